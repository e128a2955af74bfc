# SPDX-License-Identifier: Apache-2.0
"""Command lines of archivers: what they do and which arguments may be the archive."""

from __future__ import annotations

import pytest

from etrace.compilers import tools
from etrace.compilers.ar import Action, ArCommand, parse

READS, WRITES, SCRIPT = Action.READS, Action.WRITES, Action.SCRIPT


@pytest.mark.parametrize(
    ("line", "action", "operands"),
    [
        ("ar rcs x.a a.o", WRITES, "x.a a.o"),
        ("ar -rcs x.a a.o", WRITES, "x.a a.o"),
        ("ar -r -c -s x.a a.o", WRITES, "x.a a.o"),
        ("ar q x.a a.o", WRITES, "x.a a.o"),
        ("ar d x.a a.o", WRITES, "x.a a.o"),
        ("ar m x.a a.o", WRITES, "x.a a.o"),
        ("ar rb a.o x.a b.o", WRITES, "a.o x.a b.o"),
        ("ar rN 2 x.a a.o", WRITES, "2 x.a a.o"),
        ("ar t x.a", READS, "x.a"),
        ("ar p x.a a.o", READS, "x.a a.o"),
        ("ar xo x.a", READS, "x.a"),
        ("ar s x.a", READS, "x.a"),
        ("ar -M", SCRIPT, ""),
        ("ar M", SCRIPT, ""),
        ("ar --plugin /lib/lto.so -rcs x.a a.o", WRITES, "x.a a.o"),
        ("ar --plugin=/lib/lto.so rcs x.a", WRITES, "x.a"),
        ("ar rcs --thin x.a a.o", WRITES, "x.a a.o"),
        ("ar rcs --record-libdeps -lm x.a a.o", WRITES, "x.a a.o"),
        ("ar -X64 t x.a", READS, "x.a"),
        ("llvm-ar --format=gnu rcs x.a a.o", WRITES, "x.a a.o"),
        ("llvm-ar --format gnu t x.a", READS, "x.a"),
        ("ar --output dir x x.a", READS, "x.a"),
        ("ar --version", READS, ""),
        ("ar", READS, ""),
    ],
)
def test_an_archiver_says_what_it_does(line: str, action: Action, operands: str) -> None:
    argv = [word.encode() for word in line.split()]
    assert parse(argv, tools.load()["ar"].options) == ArCommand(
        action, tuple(word.encode() for word in operands.split())
    )
