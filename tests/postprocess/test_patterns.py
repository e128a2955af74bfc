# SPDX-License-Identifier: Apache-2.0
"""Command patterns of the configuration as bits of every execution (engine: tests/libetrace)."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from libetrace.depend.configuration import load
from libetrace.image.file import Image

from etrace.nfsdb.products import StringTable
from etrace.postprocess.patterns import PHASE
from etrace.postprocess.run import Work, say_nothing

SHELL, CHILD = 100, 101
LIBC = ctypes.CDLL(None)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    t = TraceBuilder().exec(SHELL, "/bin/sh", ["sh", "-c", "make all"]).fork(SHELL, CHILD)
    t.exec(CHILD, "/usr/bin/make", ["make", "all", "a b"]).exit(CHILD).exit(SHELL)
    return database_of(tmp_path, t.trace())


def run(image: Image, patterns: list[str], jobs: int = 1) -> tuple[list[bytes], list[bytes], str]:
    """Return the patterns as the image will have them, the bits of each row, and what is said."""
    directory = image.path.parent
    (directory / ".bas_config").write_text(
        json.dumps({"exclude_command_variants": {"*": patterns}})
    )
    strings = StringTable(image)
    tables = PHASE.run(Work(image, strings, load(directory), jobs, say_nothing))
    numbers, bits = (table.columns[0].data for table in tables)
    n_bytes = -(-len(numbers) // 8)
    rows = [bytes(bits[i : i + n_bytes]) for i in range(0, len(bits), n_bytes or 1)]
    known = {strings.number(os.fsencode(pattern)): os.fsencode(pattern) for pattern in patterns}
    return [known[number] for number in numbers], rows, PHASE.describe(tables)


def test_bits_are_numbered_from_the_left_in_order_of_the_patterns(image: Image) -> None:
    patterns = ["sh*", *(f"no{n}" for n in range(7)), "make*", "*a b"]
    names, rows, text = run(image, patterns)
    assert names == [pattern.encode() for pattern in patterns]
    # the root's index 0 has no argv, the shell, the child before its exec (the shell's argv), make
    assert rows == [b"\0\0", b"\x80\0", b"\x80\0", b"\0\xc0"]
    assert text == "4 matches of 10 command patterns"


def test_without_patterns_there_is_nothing(image: Image) -> None:
    assert run(image, []) == ([], [], "0 matches of 0 command patterns")


@pytest.mark.parametrize("jobs", [1, 2, 3, 16])
def test_threads_share_the_rows(image: Image, jobs: int) -> None:
    patterns = ["", "*", "make all a b", "[ms]*", "\\make*", "żółw*", "make?all*"]
    names, rows, _ = run(image, patterns, jobs)
    texts = [b"", b"sh -c make all", b"sh -c make all", b"make all a b"]
    for text, row in zip(texts, rows, strict=True):
        wanted = [LIBC.fnmatch(name, text, 0) == 0 for name in names]
        assert [bool(row[i // 8] & 0x80 >> i % 8) for i in range(len(names))] == wanted
