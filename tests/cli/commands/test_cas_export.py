# SPDX-License-Identifier: Apache-2.0
"""`cas export compile_commands` and build-spec; the other formats are in test_cas_parse.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database
from libetrace.depend import configuration as config

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.postprocess import run

EXPECTED = [
    {
        "directory": "/src",
        "arguments": ["gcc", "-c", "a.c"],
        "file": "/src/a.c",
        "output": "/src/a.o",
    }
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    recorded = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", writes=["/src/a.o"]).end(10)
    image = write_database(tmp_path, recorded.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    return tmp_path


def test_compile_commands_go_to_the_output_or_a_file(
    database: Path, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    words = ["export", "compile_commands", "--dbdir", str(database)]
    assert cas(words) == 0
    assert json.loads(capfdbinary.readouterr().out) == EXPECTED
    assert cas([*words, "-o", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_bytes()) == EXPECTED


def test_without_compilations_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_database(tmp_path, BuildTeller().trace())
    assert open_database(tmp_path)
    output = tmp_path / "out.json"
    words = ["export", "compile_commands", "--dbdir", str(tmp_path), "-o", str(output)]
    assert cas(words) == 2
    assert "run: cas pp" in capsys.readouterr().err
    assert not output.exists()


def test_options_may_come_before_the_directory(database: Path, tmp_path: Path) -> None:
    assert cas(["export", "parquet", "--dbdir", str(database), str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "executions.parquet").exists()


def test_what_cannot_be_written_is_named_as_it_was_given(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, nowhere = tmp_path / "file", tmp_path / "no" / "out.json"
    file.touch()
    words = ["export", "--dbdir", str(database)]
    assert cas([*words, "parquet", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"cas: error: {file}: not a directory\n  hint: each table becomes a file in a directory\n"
    )
    assert cas([*words, "json", "-o", str(nowhere)]) == 2
    assert capsys.readouterr().err == f"cas: error: {nowhere}: No such file or directory\n"


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A database of configure's compilation, one of standard input, and those of two sources."""
    recorded = BuildTeller()
    recorded.run(9, "/bin/sh", "sh configure", writes=["/src/conftest.c"])
    recorded.run(10, "/usr/bin/gcc", "gcc -c conftest.c", reads=["/src/conftest.c"])
    recorded.run(11, "/usr/bin/gcc", "gcc -c -x c - -o x.o", writes=["/src/x.o"])
    recorded.run(12, "/usr/bin/gcc", "gcc -c a.c", reads=["/src/a.c"], writes=["/src/a.o"])
    there = tmp_path / "there.c"
    there.touch()
    recorded.run(13, "/usr/bin/gcc", f"gcc -c {there} -o t.o", reads=[str(there)])
    image = write_database(tmp_path, recorded.end(9, 10, 11, 12, 13).trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    return tmp_path


DEFAULT = (
    "cas: left out 2 entries: 1 of sources that the build made and removed,"
    " 1 of sources that came through standard input; --all-sources has them\n"
)


@pytest.mark.parametrize(
    ("options", "wanted", "said"),
    [
        ([], ["a.c", "there.c"], DEFAULT),
        (["--all"], ["conftest.c", "stdin", "a.c", "there.c"], ""),
        (
            ["--all", "--existing"],
            ["there.c"],
            "cas: left out 3 entries: 3 of sources that are not there now\n",
        ),
        (["--below", "/src"], ["a.c"], DEFAULT),
        (["--all", "--below", "/src", "--below", "/dev"], ["conftest.c", "stdin", "a.c"], ""),
        (
            ["--all", "--below", "/scr"],
            [],
            "cas: left out 4 entries: 4 of sources outside --below\n",
        ),
    ],
)
@pytest.mark.parametrize("module", ["export compile_commands", "commands --generate"])
def test_sources_that_are_gone_are_left_out_and_reported(
    configured: Path,
    capsys: pytest.CaptureFixture[str],
    module: str,
    options: list[str],
    wanted: list[str],
    said: str,
) -> None:
    assert cas([*module.split(), "--dbdir", str(configured), *options]) == 0
    shown = capsys.readouterr()
    assert [Path(each["file"]).name for each in json.loads(shown.out)] == wanted
    assert shown.err == said


def test_a_makefile_has_no_rules_for_sources_that_are_gone(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["commands", "--generate", "--makefile", "--dbdir", str(configured)]
    assert cas(words) == 0
    shown = capsys.readouterr()
    assert "conftest.c" not in shown.out
    assert "a.c" in shown.out
    assert shown.err == DEFAULT
    assert cas([*words, "--all"]) == 0
    assert "conftest.c" in capsys.readouterr().out


def test_a_filter_chooses_sources(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "compile_commands", "--filter", "[path=/a.c]", "--dbdir", str(configured)]
    assert cas(words) == 0
    assert [each["file"] for each in json.loads(capsys.readouterr().out)] == ["/src/a.c"]
    assert cas([*words[:3], "[path=b.c]", *words[4:]]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == []
    assert shown.err == DEFAULT.replace("2 entries", "4 entries").replace(
        "; --all-sources has them", ", 2 of sources that --filter does not select"
    )
    assert cas(["export", "json", *words[2:]]) == 2
    assert "--filter is for compile_commands" in capsys.readouterr().err


# ---- rules, merging, other formats ----


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--include", "/src"], ["a.c"]),
        (["--exclude", "/src"], ["there.c"]),
        (["--exclude", "*.c", "--include=a.*"], ["a.c"]),
        (["--include=a.*", "--exclude", "/src/a.c"], []),
    ],
)
def test_rules_choose_sources_in_their_order(
    configured: Path, capsys: pytest.CaptureFixture[str], options: list[str], wanted: list[str]
) -> None:
    assert cas(["export", "compile_commands", "--dbdir", str(configured), *options]) == 0
    shown = capsys.readouterr()
    assert [Path(each["file"]).name for each in json.loads(shown.out)] == wanted
    assert ("2 of sources that --include and --exclude leave out" in shown.err) == (not wanted)


def test_the_file_of_o_is_merged_with_the_new_entries(database: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    old = [{"directory": "/src", "file": "a.c", "arguments": ["cc"]},
           {"directory": "/src", "file": "b.c", "command": "cc b.c"}]  # fmt: skip
    words = ["export", "compile_commands", "--dbdir", str(database), "-o", str(output)]
    for option, kept in (("--append", old), ("--update", old[1:])):
        output.write_text(json.dumps(old))
        assert cas([*words, option]) == 0
        assert json.loads(output.read_text()) == [*kept, *EXPECTED]
    output.write_text("{")
    assert cas([*words, "--update"]) == 2
    assert output.read_text() == "{"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["compile_commands", "--append"], "name it: -o FILE"),
        (["compile_commands", "--append", "--update", "-o", "x"], "give one of them"),
        (["json", "--command"], "--command is for compile_commands"),
        (["json", "--include", "x"], "--include is for compile_commands"),
        (["build-spec", "--links", "x"], "--links is for compile_commands"),
        (["build-spec", "--keep-response-files"], "--keep-response-files is for"),
        (["compile_commands", "-d"], "--debug is for build-spec"),
        (["json", "-c", "gcc"], "--compilers is for build-spec"),
        (["build-spec", "somewhere"], "cas export build-spec -o somewhere"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    database: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert cas(["export", *options, "--dbdir", str(database)]) == 2
    assert message in capsys.readouterr().err


def test_a_build_spec_has_the_programs_that_are_asked_for(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "build-spec", "--dbdir", str(database)]
    assert cas([*words, "--also", "mak?"]) == 0
    assert [each["arguments"][0] for each in json.loads(capsys.readouterr().out)] == ["make", "gcc"]
    assert cas([*words, "-c", "vc,wc"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == []
    assert shown.err == (
        "cas: the build spec is empty: none of 2 calls is of a known program; these ran: make (1),"
        " gcc (1)\n  hint: --compilers LIST names the programs that you want; --debug writes all\n"
    )


@pytest.mark.parametrize(
    ("command", "status", "reason"),
    [
        ("/usr/bin/gcc gcc -c a.c", 1, "1 call of known compilers, 1 of them failed; the others"),
        ("/usr/bin/gcc gcc -E a.c", 0, "1 call of known compilers; the others only linked, "),
        ("/bin/sh sh x", 0, "2 programs ran, none of them a known compiler: /usr/bin/make (1), "),
    ],
)
def test_no_entries_have_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int, reason: str
) -> None:
    binary, _, argv = command.partition(" ")
    recorded = BuildTeller().run(10, binary, argv).end(10, status=status)
    image = write_database(tmp_path, recorded.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    assert cas(["export", "compile_commands", "--dbdir", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "[]\n"
    assert shown.err.startswith(f"cas: no entries: {reason}")
