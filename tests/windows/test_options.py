# SPDX-License-Identifier: Apache-2.0
"""The command line of windows-tracer, its statuses and its messages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from windows.wine import WINE, Wine, read_spec


@pytest.fixture
def folder(actor: Path, tmp_path: Path) -> Path:
    """Return a folder with a known and an unknown program."""
    for name in ("gcc.exe", "other.exe", "armlink.exe"):
        shutil.copy(actor, tmp_path / name)
    (tmp_path / "a.via").write_text('-DA "b c"')
    return tmp_path


def arguments(folder: Path, name: str = "compile_commands.json") -> list[list[str]]:
    return [item["arguments"] for item in read_spec(folder / name)]


def test_the_usage_and_the_version(wine: Wine, tmp_path: Path) -> None:
    for option in ("-h", "-?", "/?"):
        done = wine.trace(tmp_path, option)
        assert (done.status, done.out) == (1, "")
        assert done.error.startswith("usage: windows-tracer")
    assert wine.trace(tmp_path, "--help").out.startswith("usage: windows-tracer")
    assert wine.trace(tmp_path, "--version").out == "windows-tracer 0.test\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no command to trace"),
        (("--",), "no command to trace"),
        (("-x", "--", "a"), "unknown option: -x"),
        (("-o",), "the option lacks its value: -o"),
    ],
)
def test_a_wrong_command_line_ends_with_1(
    wine: Wine, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = wine.trace(tmp_path, *words)
    assert done.status == 1
    assert message in done.error
    assert list(tmp_path.iterdir()) == []


def test_the_known_programs_are_written_and_an_empty_spec_is_reported(
    wine: Wine, folder: Path
) -> None:
    assert wine.trace(folder, "--", "other.exe", "run", "gcc", "exit", "0").error == ""
    assert arguments(folder) == [["gcc", "exit", "0"]]
    done = wine.trace(folder, "--", "other.exe", "exit", "3")
    assert done.status == 3
    assert "the build spec is empty: none of the 1 programs" in done.error
    assert (folder / "compile_commands.json").read_text() == "[\n]\n"


def test_a_list_replaces_the_known_programs(wine: Wine, folder: Path) -> None:
    wine.trace(folder, "-c", "OTH*,x", "-o", "s", "--", "other.exe", "run", "gcc", "exit", "0")
    assert [words[0] for words in arguments(folder, "s")] == ["other.exe"]


def test_the_configuration_of_xcalbuild_says_how_files_are_named(wine: Wine, folder: Path) -> None:
    rule = {"argument": "--Via", "argFormat": ["equal", "space"]}
    (folder / "c.json").write_text(json.dumps([{"binary": "armlink", "responseFileArgs": [rule]}]))
    command = ("other.exe", "run", "armlink", "exit", "0", "--via", "a.via", "@a.via")
    wine.trace(folder, "/o", "s", "/c", "c.json", "--expand", *command)
    assert arguments(folder, "s") == [["armlink", "exit", "0", "-DA", "b c", "@a.via"]]
    wine.trace(folder, "/o", "s", "/c", "c.json", *command)
    assert read_spec(folder / "s")[0]["respfile"] == '-DA "b c"'
    (folder / "c.json").write_text("[]")
    wine.trace(folder, "/o", "s", "/c", "c.json", *command)
    assert [words[0] for words in arguments(folder, "s")] == ["other.exe", "armlink"]


def test_a_wrong_configuration_is_named_with_its_byte(wine: Wine, folder: Path) -> None:
    (folder / "c.json").write_text('[{"binary": 1}]')
    done = wine.trace(folder, "/c", "c.json", "--", "other.exe")
    assert done.status == 125
    assert "c.json: byte 12: expected a string" in done.error


def test_a_response_file_that_the_build_removes_is_saved(wine: Wine, folder: Path) -> None:
    command = ("gcc", "erase", "a.via", "@a.via")
    assert wine.trace(folder, "--nfsdb", "t", "-o", "s", "--", *command).status == 0
    assert read_spec(folder / "s")[0]["respfile"] == '-DA "b c"'
    assert (folder / "t.rsp").read_text().endswith('a.via\n-DA "b c"\n')
    assert not (folder / "a.via").exists()


def test_an_output_that_cannot_be_written_ends_before_the_build(wine: Wine, folder: Path) -> None:
    done = wine.trace(folder, "-o", r"no\such\s", "--", "gcc", "erase", "a.via")
    assert done.status == 125
    assert r"no\such\s" in done.error
    assert (folder / "a.via").exists()


def test_what_outlives_the_command_can_be_left(wine: Wine, folder: Path) -> None:
    words = ("-d", "-o", "s", "--no-wait", "--", "other.exe", "stay")
    with (folder / "said").open("wb") as said:  # a pipe would stay open
        done = subprocess.run(
            [WINE, wine.tracer, *words], cwd=folder, env=wine.environment, stdin=said, stdout=said,
            stderr=said, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert "outlives the command" in (folder / "said").read_text()
    assert len(read_spec(folder / "s")) == 2


def test_an_option_of_the_configuration_without_a_name_is_refused(wine: Wine, folder: Path) -> None:
    """Every word would begin with it."""
    rule = {"argument": "", "argFormat": ["attached"]}
    (folder / "c.json").write_text(json.dumps([{"binary": "gcc", "responseFileArgs": [rule]}]))
    done = wine.trace(folder, "/c", "c.json", "--", "other.exe")
    assert done.status == 125
    assert 'the option has no "argument"' in done.error


@pytest.mark.parametrize("spec", ["T", "t.RSP"])
def test_outputs_that_would_replace_each_other_are_refused(
    wine: Wine, folder: Path, spec: str
) -> None:
    done = wine.trace(folder, "-o", spec, "--nfsdb", "t", "--", "gcc", "erase", "a.via")
    assert done.status == 1
    assert "-o and --nfsdb name one file" in done.error
    assert (folder / "a.via").exists()


def test_an_empty_name_is_refused(wine: Wine, folder: Path) -> None:
    done = wine.trace(folder, "-o", "", "--", "gcc", "erase", "a.via")
    assert done.status == 1
    assert "empty value" in done.error
    assert (folder / "a.via").exists()


def test_a_list_replaces_a_configuration_that_knows_every_program(wine: Wine, folder: Path) -> None:
    (folder / "c.json").write_text("[]")
    command = ("other.exe", "run", "gcc", "exit", "0")
    wine.trace(folder, "/c", "c.json", "-c", "gcc", "-o", "s", "--", *command)
    assert [words[0] for words in arguments(folder, "s")] == ["gcc"]
