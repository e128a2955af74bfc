# SPDX-License-Identifier: Apache-2.0
"""Dependency files as compilers write them; what ninja makes of them is the oracle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from etrace.rules import dependency_files

#: the text of a dependency file -> what it names
FORMS = {
    "gcc": ("a.o: a.c \\\n x.h \\\n  y.h\n", ["a.c", "x.h", "y.h"]),
    "a tab after the colon": ("a.o:\ta.c\tx.h\n", ["a.c", "x.h"]),
    "a blank before the colon": ("a.o : a.c x.h\n", ["a.c", "x.h"]),
    "CR LF": ("a.o: a.c \\\r\n x.h\r\n", ["a.c", "x.h"]),
    "no line end": ("a.o: a.c x.h", ["a.c", "x.h"]),
    "several targets": ("a.o a.su: a.c x.h\n", ["a.c", "x.h"]),
    "targets of -MP": ("a.o: a.c x.h\n\nx.h:\n", ["a.c", "x.h"]),
    "several rules": ("a.o: a.c\na.o: x.h\n", ["a.c", "x.h"]),
    "a blank in a name": ("a.o: a.c b\\ c.h d\\ \\ e.h\n", ["a.c", "b c.h", "d  e.h"]),
    "backslashes before a blank": ("a.o: a.c b\\\\\\ c.h\n", ["a.c", "b\\ c.h"]),
    "a pair of backslashes": ("a.o: a.c b\\\\ c.h\n", ["a.c", "b\\\\", "c.h"]),
    "a backslash in a name": ("a.o: a.c d\\x.h\n", ["a.c", "d\\x.h"]),
    "a number sign": ("a.o: a.c x\\#y.h\n", ["a.c", "x#y.h"]),
    "a dollar": ("a.o: a.c x$$y.h\n", ["a.c", "x$y.h"]),
    "a colon in a name": ("a.o: a.c C:/x.h d:e.h f\\:g.h\n", ["a.c", "C:/x.h", "d:e.h", "f:g.h"]),
    "a colon in a target": ("C:/a.o: a.c x.h\n", ["a.c", "x.h"]),
    "two dots": ("a.o: a.c d/../x.h ./y.h\n", ["a.c", "x.h", "y.h"]),
    "other characters": ("a.o: a.c é.h x+y@z~{1}.h\n", ["a.c", "é.h", "x+y@z~{1}.h"]),
}  # fmt: skip


def write(tree: Path, text: str) -> Path:
    """Write a dependency file; return its path."""
    path = tree / "a.d"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read(tmp_path: Path, form: str) -> None:
    text, names = FORMS[form]
    assert list(dependency_files.inputs(write(tmp_path, text))) == names


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"a colon in a target"}))
def test_ninja_reads_the_same(tmp_path: Path, form: str) -> None:
    text, names = FORMS[form]
    write(tmp_path, text)
    (tmp_path / "build.ninja").write_text(
        "rule r\n  command = touch $out\n  depfile = a.d\n  deps = gcc\nbuild a.o: r\n"
    )
    subprocess.run(["ninja"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        ["ninja", "-t", "deps"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert [line.strip() for line in done.stdout.splitlines()[1:] if line] == names


def test_what_cl_prints_of_includes(tmp_path: Path) -> None:
    text = "a.c\r\nNote: including file:  C:/My Code/x.h\r\nNote: including file:   y.h\r\n"
    assert list(dependency_files.inputs(write(tmp_path, text))) == ["C:/My Code/x.h", "y.h"]


@pytest.mark.parametrize("text", ["", "\n", "# a: b\n", "a.o b.c\n", "a.o:\n", ":\n"])
def test_a_file_that_names_nothing(tmp_path: Path, text: str) -> None:
    assert list(dependency_files.inputs(write(tmp_path, text))) == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert list(dependency_files.inputs(tmp_path / "a.d")) == []


#: clang escapes neither tabs nor backslashes
@pytest.mark.parametrize(
    ("compiler", "headers"),
    [
        ("gcc", ["x y.h", "a#b.h", "a$b.h", "a\\b.h", "a\\ b.h"]),
        ("clang", ["x y.h", "a#b.h", "a$b.h"]),
    ],
)
def test_names_that_compilers_escape(tmp_path: Path, compiler: str, headers: list[str]) -> None:
    for name in headers:
        (tmp_path / name).touch()
    (tmp_path / "a.c").write_text("".join(f'#include "{name}"\n' for name in headers))
    subprocess.run([compiler, "-MMD", "-MF", "a.d", "-c", "a.c"], cwd=tmp_path, check=True)
    assert set(headers) <= set(dependency_files.inputs(tmp_path / "a.d"))
