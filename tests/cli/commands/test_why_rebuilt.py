# SPDX-License-Identifier: Apache-2.0
"""`etrace why-rebuilt`: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from backends import capture
from databases import TRACE, parse_database

from etrace.cli.main import etrace


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the databases of three builds: before, after and nothing."""
    top = tmp_path_factory.mktemp("builds")
    source = top / "src"
    source.mkdir()
    (source / "Makefile").write_text("app: a.c a.h b.o\n\tgcc -o $@ a.c b.o\nb.o: b.c\n")
    (source / "a.c").write_text('#include "a.h"\nint main(void) { return A; }\n')
    (source / "b.c").write_text("int b;\n")
    for name, header in (
        ("before", "#define A 1\n"),
        ("after", "#define A 100\n"),
        ("nothing", ""),
    ):
        (top / name).mkdir()
        if header:
            (source / "a.h").write_text(header)
        command = ["make", "-B"] if header else ["make"]
        done = capture(command, source, trace=top / name / TRACE, env=dict(os.environ))
        assert done.status == 0, done.stderr.decode()
        parse_database(top / name)
    return top


def words(builds: Path, *more: str, after: str = "after") -> list[str]:
    return ["why-rebuilt", "-q", str(builds / "before"), str(builds / after), *more]


def test_a_table_by_cause_comes_first(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(words(builds)) == 0
    assert capsys.readouterr().out == (
        "  files  cause\n"
        "      1  input        an input has another content\n"
        "      1  needless     made needlessly, as far as sizes show\n"
        "\n"
        "input: an input has another content\n"
        "  app  a.h 12 -> 14 bytes  in gcc a.c\n"
        "\n"
        "needless: made needlessly, as far as sizes show\n"
        "  b.o  in cc b.c\n"
    )


def test_json_has_both_commands(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(words(builds, "app", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["causes"] == {"input": 1}
    (file,) = found["files"]
    assert (file["before"], file["after"], file["via"]) == ("12", "14", [])
    assert file["path"].endswith("/src/app")
    assert file["made_by"]["command"] == ["gcc", "-o", "app", "a.c", "b.o"]


def test_nothing_made_again_ends_with_1(builds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(words(builds, after="nothing")) == 1
    assert capsys.readouterr().out == "nothing was made again\n"


def test_a_file_that_was_not_made_ends_with_1(
    builds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace(words(builds, "a.c")) == 1
    error = capsys.readouterr().err
    assert "the second build did not make" in error
    assert "hint: " in error


def test_a_trace_that_was_not_parsed_in_time_is_named(
    builds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / TRACE).write_bytes((builds / "before" / TRACE).read_bytes())
    etrace(["why-rebuilt", str(tmp_path), str(builds / "after")])
    assert "was not parsed before: sizes are those of now" in capsys.readouterr().err


def test_one_build_is_wrong_usage(builds: Path) -> None:
    with pytest.raises(SystemExit) as end:
        etrace(["why-rebuilt", str(builds / "before")])
    assert end.value.code == 2
