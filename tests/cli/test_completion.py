# SPDX-License-Identifier: Apache-2.0
"""Completion: the shells themselves read the scripts and are asked to complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from etrace.cli.main import etrace
from etrace.cli.manual.completion import script

SHELLS = ("bash", "zsh", "fish")
STUBS = {"bash": "etrace.bash", "zsh": "_etrace", "fish": "etrace.fish"}
COMPLETE_IN_BASH = r"""
source "$1"; shift
function_name=$(complete -p "$1" | sed 's/.*-F \([^ ]*\).*/\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"$function_name" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("completion")
    for name in SHELLS:
        (directory / name).write_text(script(name))
    return directory


def test_the_shell_reads_its_script(shell: str, scripts: Path) -> None:
    done = subprocess.run([shell, "-n", scripts / shell], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_the_shell_reads_what_is_installed(shell: str) -> None:
    stub = Path("completions") / STUBS[shell]
    subprocess.run([shell, "-n", stub], check=True)


def test_every_program_that_is_completed_has_an_installed_file(scripts: Path) -> None:
    share = Path(sys.prefix, "share")
    completed = sorted(re.findall(r"(?m)^complete -F \S+ (\S+)$", (scripts / "bash").read_text()))
    assert completed == ["cas", "etrace", "etrace_cat", "etrace_parser", "etraced"]
    for folder, suffix in (
        ("bash-completion/completions", ""),
        ("fish/vendor_completions.d", ".fish"),
    ):
        there = sorted(path.name for path in (share / folder).iterdir())
        assert there == [f"{name}{suffix}" for name in completed]
    first = (share / "zsh/site-functions/_etrace").read_text().splitlines()[0]
    assert first == f"#compdef {' '.join(completed)}"


def in_bash(scripts: Path, *words: str) -> list[str]:
    start = ["bash", "--norc", "-c", COMPLETE_IN_BASH, "bash", str(scripts / "bash")]
    done = subprocess.run([*start, *words], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


def in_fish(scripts: Path, line: str) -> list[str]:
    command = f"source {scripts / 'fish'}; complete -C '{line}'"
    done = subprocess.run(["fish", "-N", "-c", command], capture_output=True, text=True, check=True)
    return [found.split("\t")[0] for found in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["etrace", "d"], ["doctor"]),
        (["etrace", "run", "--back"], ["--backend"]),
        (["etrace", "run", "--backend", "k"], ["kmod"]),
        (["etrace", "run", "--backend", "=", "k"], ["kmod"]),
        (["etrace", "completion", "z"], ["zsh"]),
        (["etrace_parser", "--sp"], ["--split"]),
        (["etrace_cat", "--ins"], ["--instance"]),
        (["etraced", "--li"], ["--listen"]),
        (["cas", "linked"], ["linked-modules"]),
        (["cas", "--db", "x", "compilation"], ["compilation-info-for"]),
        (["cas", "refs", "--rel"], ["--relative"]),
        (["cas", "pr", "--with"], ["--with-children"]),
        (["cas", "pr", "--pid", "1", "refs", "--with"], []),
        (["cas", "refs", "--filter", "faccess", "--with"], []),
        (["cas", "refs", "binar"], ["binaries"]),
        (["cas", "deps", "--kind", "s"], ["source"]),
    ],
)
def test_bash_and_fish_complete(scripts: Path, words: list[str], wanted: list[str]) -> None:
    assert in_bash(scripts, *words) == wanted
    line = " ".join(words).replace(" = ", "=")
    found = in_fish(scripts, line)
    prefix = "--backend=" if "=" in line else ""
    assert [word.removeprefix(prefix) for word in found] == wanted


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("etrace doc", r"doctor "),
        ("etrace_cat --ins", r"--instance"),
        ("etraced --li", r"--listen"),
        ("cas refs --rela", r"--relative"),
        ("cas deps --kind sou", r"--kind source"),
        ("etrace run --backend=km", r"--backend=kmod"),
        ("cas pr --pid 1 linked-m", r"linked-m\a?odules"),
    ],
)
def test_zsh_completes(scripts: Path, tmp_path: Path, typed: str, wanted: str) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "dumb"}
    with Terminal(["zsh", "-f", "-i"], tmp_path, env) as terminal:
        terminal.line(f"autoload -Uz compinit; compinit -u; source {scripts / 'zsh'}; echo re''ady")
        terminal.wait_for("ready")
        terminal.type(f"{typed}\t")
        terminal.wait_for(wanted)


def test_bash_completes_files(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").touch()
    (tmp_path / "maind").mkdir()
    start = f"{tmp_path}/mai"
    assert in_bash(scripts, "cas", "refs", "--path", start) == [f"{start}n.c", f"{start}nd"]
    assert in_bash(scripts, "cas", "refs", "--db", start) == [f"{start}nd"]
    assert in_bash(scripts, "etrace", "run", "make", start) == [f"{start}n.c", f"{start}nd"]


def test_targets_are_completed(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cas").write_text(
        '#!/bin/sh\ntest "$*" = "--db db linked-modules" && '
        'printf "/b/apache\\n/b/apr.so\\n/b/x\\n"\n'
    )
    (tmp_path / "cas").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = ("cas", "--db", "db", "deps", "ap")
    assert in_bash(scripts, *words) == ["apache", "apr.so"]
    assert [word for word in in_fish(scripts, " ".join(words)) if word != "pr"] == [
        "apache",
        "apr.so",
    ]
    with Terminal(["zsh", "-f", "-i"], tmp_path, {**os.environ, "TERM": "dumb"}) as terminal:
        terminal.line(f"autoload -Uz compinit; compinit -u; source {scripts / 'zsh'}; echo re''ady")
        terminal.wait_for("ready")
        terminal.type("cas --db db deps apa\t")
        terminal.wait_for(r"(?s)apa.{0,8}che")


def test_a_name_of_the_database_is_never_run(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ap$(touch ran)", "ap`touch ran`", "ap;touch ran", "ap\x1b[2J", "ap'q", "app")
    (tmp_path / "names").write_text("".join(f"/b/{name}\n" for name in names))
    (tmp_path / "cas").write_text(f"#!/bin/sh\ncat {tmp_path}/names\n")
    (tmp_path / "cas").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    assert in_bash(scripts, "cas", "deps", "ap") == ["app"]
    assert [word for word in in_fish(scripts, "cas deps ap") if word != "pr"] == ["app"]
    assert not (tmp_path / "ran").exists()


def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(["completion", shell]) == 0
    assert capsys.readouterr().out == script(shell)


def test_commands_of_a_command_are_completed(shell: str, scripts: Path) -> None:
    if shell == "bash":
        assert "graph-diff" in in_bash(scripts, "etrace", "xray", "gra")
        assert in_bash(scripts, "etrace", "xray", "account", "--by-t") == ["--by-thread"]
        assert in_bash(scripts, "etrace", "xray", "convert", "--format", "spe") == ["speedscope"]
        assert "account" not in in_bash(scripts, "etrace", "a")
    elif shell == "fish":
        assert "graph-diff" in in_fish(scripts, "etrace xray gra")
        assert "--by-thread" in in_fish(scripts, "etrace xray account --by-t")
        assert "account" not in in_fish(scripts, "etrace a")
