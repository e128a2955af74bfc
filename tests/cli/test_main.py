# SPDX-License-Identifier: Apache-2.0
"""The entry points: help, versions, unknown commands, errors as messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from backends import PRELOAD, PTRACE

import etrace
from etrace import __version__
from etrace.cli import main, xray
from etrace.cli.ending import guarded
from etrace.errors import CaptureError, EtraceError, NothingFoundError, UsageError

PROGRAMS = Path(sys.executable).parent
EXTRAS = ["analytics", "perfetto", "web"]
LIBEXEC = Path(etrace.__file__).parent / "libexec"
#: modules that `etrace --help` must not import: they make it slow
HEAVY = ("jinja2", "rich", "pyroute2", "elftools", "hypothesis", "libetrace", "json", "subprocess")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.etrace(["--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f"  {c.name} " in out and c.summary in out for c in main.COMMANDS)


@pytest.mark.parametrize("command", [c.name for c in main.COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.etrace([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: etrace {command}" in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom etrace.cli import main\n"
        "try: main.etrace(['--help'])\nexcept SystemExit: pass\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("LOADED ")[1].split())
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("rnu", "did you mean run?"),
        ("xyz", "there are: run, start, status, stop, import, top, summary, report, critical-path"),
    ],
)
def test_an_unknown_command_is_a_usage_error_that_names_known_ones(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.etrace([word])
    assert ended.value.code == 2
    assert f"no command {word!r}; {hint}" in capsys.readouterr().err


def test_python_runs_it_as_a_module(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "etrace", "--version"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"etrace {__version__}")
    done = subprocess.run([*words[:-1], "rnu"], capture_output=True, text=True, check=False)
    assert (done.returncode, "etrace: error: no command 'rnu'" in done.stderr) == (2, True)


def test_no_command_prints_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.etrace([]) == 2
    assert "a first trace, and what it shows:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "status"),
    [(EtraceError, 2), (NothingFoundError, 1), (UsageError, 2), (CaptureError, 125)],
)
def test_an_error_becomes_a_message_a_hint_and_a_status(
    error: type[EtraceError], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def body() -> int:
        raise error("it broke", "repair it")

    assert guarded("etrace", body) == status
    assert capsys.readouterr().err == "etrace: error: it broke\n  hint: repair it\n"


def test_an_interrupt_ends_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise KeyboardInterrupt

    assert guarded("etrace", body) == 130
    assert capsys.readouterr().err == "etrace: interrupted\n"


def test_xray_alone_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.etrace(["xray"]) == 2
    out = capsys.readouterr().out
    assert all(f"  {command.name} " in out for command in xray.COMMANDS)


@pytest.mark.parametrize(
    "text",
    [
        '[{"directory": "/x", "file": "a.c", "command": "cc a.c"}]',
        '{"name": "x"}',
        ' [ {"traceEvents": []} ]',
    ],
)
def test_json_of_another_tool_is_called_so(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert main.etrace(["summary", str(path)]) == 2
    assert main.cas(["--dbdir", str(path), "lm"]) == 2
    assert capsys.readouterr().err.count("JSON of another tool, not a database") == 2


@pytest.mark.parametrize("text", ["", "[", '[{"p":1,"x":', '[{"p":1}]'])
def test_a_damaged_database_is_called_so(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.json"
    path.write_text(text)
    assert main.cas(["--dbdir", str(path), "lm"]) == 2
    assert "make it again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "features"),
    [
        (
            PROGRAMS / "etrace",
            ["zstd", "gcc plugin", "preload of 32 bits", "zstd command", *EXTRAS],
        ),
        (PROGRAMS / "cas", ["gcc plugin", "zstd command", "analytics"]),
        (PROGRAMS / "etrace_parser", ["zstd command"]),
        (LIBEXEC / "etrace_cat", ["zstd"]),
        (PTRACE.path(), []),
        (PRELOAD.path(), ["32 bits"]),
    ],
)
def test_a_program_says_its_version_and_features(program: Path, features: list[str]) -> None:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    head, *rest = done.stdout.removesuffix("\n").split(", ")
    assert (head, done.stderr) == (f"{program.name} {__version__}", "")
    assert [text.partition(": ")[0] for text in rest] == features
    assert {text.partition(": ")[2] for text in rest} <= {"yes", "no"}


def test_features_are_looked_for_only_when_somebody_asks() -> None:
    code = (
        "import sys\nfrom etrace.cli.cas.program import top_parser\ntop_parser()\n"
        "print('etrace.capture.features' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
