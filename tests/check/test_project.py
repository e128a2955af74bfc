# SPDX-License-Identifier: Apache-2.0
"""Which files are of the project when the build's directory is not that of the sources."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from traced_builds import keys, trace

from etrace.check.project import folders_of_sources
from etrace.rules.rule import Rule, Rules

CODE = {"src/h.h": "#define H 0\n", "src/main.c": '#include "h.h"\nint main(void){return H;}\n'}


@pytest.mark.parametrize(
    ("build", "rules"),
    [
        ("build", ("VPATH = ../src\nprog: main.o\n\tgcc -o prog main.o\n"
                  "main.o: main.c\n\tgcc -I../src -c $< -o $@\n")),
        ("build", "prog: ../src/main.c\n\tgcc -o prog $<\n"),
        ("src/build", "prog: ../main.c\n\tgcc -o prog $<\n"),
        ("deep/er/build", "S = ../../../src\nvpath %.c $(S)\nprog: main.c\n\tgcc -o $@ $^\n"),
        ("build", "include ../src/rules.mk\n"),
    ],
)  # fmt: skip
def test_sources_outside_of_the_build(tmp_path: Path, build: str, rules: str) -> None:
    more = {"src/rules.mk": "prog:\n\tgcc -o prog ../src/main.c\n"}
    for name, text in {**CODE, **more, f"{build}/Makefile": rules}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tree = trace(tmp_path / build, "make", {})
    found = [key for key in keys(tree) if "/h.h " in key]
    assert len(found) == 1
    os.utime(tmp_path / "src/h.h", (2e9, 2e9))
    assert subprocess.run(["make", "-q", "prog"], cwd=tree, check=False).returncode == 0


def test_headers_beside_sources_and_build_are_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/h.h").write_text(CODE["src/h.h"])
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.c").write_text(CODE["src/main.c"])
    (tmp_path / "build").mkdir()
    rules = "prog: ../src/main.c\n\tgcc -I../include -o prog $<\n"
    tree = trace(tmp_path / "build", "make", {"Makefile": rules})
    assert keys(tree) == ["missing-input ../include/h.h prog"]


def test_a_directory_in_which_commands_run_was_there(tmp_path: Path) -> None:
    for name in ("src", "build"):
        (tmp_path / name).mkdir()
    (tmp_path / "src/a").touch()
    rules = "all: m x\nm: ../src/a\n\tmkdir -p d; touch m\nx: ../src/a\n\tcat ../src/a > x\n"
    assert keys(trace(tmp_path / "build", "make", {"Makefile": rules})) == []


def test_folders_of_the_system_and_of_many_projects_are_not_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("p/build", "p/src", "lib", "other"):
        (home / name).mkdir(parents=True)
        (home / name / "a.c").touch()

    def folders(*needs: str) -> list[str]:
        rules = Rules(home / "p/build", {"x": Rule("x", needs)})
        found = folders_of_sources(rules, f"{home}/p/build")
        return [os.path.relpath(each, home) for each in found]

    assert folders("a.c", "/usr/include/stdio.h", "gone/../../../gone/a.c") == []
    assert folders("../src/a.c") == ["p"]
    assert folders("../../lib/a.c") == ["lib"]
    assert folders("../src/a.c", "../../lib/a.c") == ["lib", "p/src"]
