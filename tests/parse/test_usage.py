# SPDX-License-Identifier: Apache-2.0
"""Usage lines -> the table `usage`, JSON and `Execution.usage`; traces and images without it."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import libetrace
import pytest
from builders import TraceBuilder
from libetrace.image import header
from parse.parsing import WAYS, Way, parse, parse_by_reference

from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.store import open_database
from etrace.nfsdb.to_json import write_json
from etrace.parse import parse_trace

SHELL, CHILD = 5, 1 << 22 | 6
UNKNOWN = (None,) * 7


def build() -> bytes:
    """Return a shell that reports each exec, and a child that reports only its end."""
    trace = TraceBuilder("/w").exec(SHELL, "/bin/sh").fork(SHELL, CHILD)
    trace.exec(CHILD, "/bin/cc").exec(CHILD, "/bin/as")
    trace.usage(CHILD, 700, 80, 1 << 20, 9, 8, 7, 6).exit(CHILD)
    trace.usage(SHELL, 100, 0, 4096, 10, -1, 1, 2).exec(SHELL, "/bin/ld")
    trace.usage(SHELL, 350, 40, 2048, 10, 50, 3, 1).exit(SHELL)
    return trace.trace()


#: by (upid, index)
USED = {
    (SHELL, 0): UNKNOWN,
    (SHELL, 1): (100, 0, 4096, 10, None, 1, 2),
    (SHELL, 2): (250, 40, 2048, 0, 50, 2, None),  # fewer forced switches than before: not known
    (CHILD, 0): UNKNOWN,
    (CHILD, 1): UNKNOWN,
    (CHILD, 2): (700, 80, 1 << 20, 9, 8, 7, 6),
}


def usage_of(image: Path) -> dict[tuple[int, int], tuple[int | None, ...]]:
    database = libetrace.nfsdb()
    database.load(image, quiet=True)
    return {(entry.eid.pid, entry.eid.index): tuple(entry.usage) for entry in database}


def make(directory: Path, trace: bytes) -> Path:
    (directory / ".nfsdb").write_bytes(trace)
    parse_trace([directory / ".nfsdb"], directory / ".nfsdb.json")
    return directory / ".nfsdb.img"


def test_executions_have_the_sums_without_those_before(tmp_path: Path) -> None:
    assert usage_of(make(tmp_path, build())) == USED


def test_json_holds_it_and_gives_it_back(tmp_path: Path) -> None:
    image = make(tmp_path, build())
    before = image.with_suffix(".json").read_bytes()
    entries = json.loads(before)
    assert [entry.get("a") for entry in entries] == [
        {key: value for key, value in zip("usmrwvf", used, strict=True) if value is not None}
        or None
        for used in USED.values()
    ]
    build_image(name_files(tmp_path / ".nfsdb"))
    assert usage_of(image) == USED
    again = io.BytesIO()
    write_json(open_database(tmp_path), again)
    assert again.getvalue() == before


@pytest.mark.parametrize("way", WAYS)
def test_it_is_as_the_reference_parser_has_it(tmp_path: Path, way: Way) -> None:
    assert parse([build()], tmp_path, way).raw == parse_by_reference([build()]).raw


def test_a_trace_without_it_makes_no_table(tmp_path: Path) -> None:
    trace = b"".join(line for line in build().splitlines(keepends=True) if b"!Usage|" not in line)
    image = make(tmp_path, trace)
    assert "usage" not in open_database(tmp_path).tables
    assert set(usage_of(image).values()) == {UNKNOWN}
    entries = json.loads(image.with_suffix(".json").read_bytes())
    assert not any("a" in entry for entry in entries)


def test_usage_changes_nothing_else_of_a_database(tmp_path: Path) -> None:
    lines = build().splitlines(keepends=True)
    with_usage = parse([build()], tmp_path).entries
    plain = parse([b"".join(line for line in lines if b"!Usage|" not in line)], tmp_path).entries
    assert [
        {key: value for key, value in entry.items() if key != "a"} for entry in with_usage
    ] == plain


@pytest.mark.parametrize("line", [
    b"Usage|user=-2,system=0,maxrss=0,rchar=0,wchar=0,voluntary=0,forced=0",
    b"Usage|user=1,system=0,maxrss=0,rchar=0,wchar=0,voluntary=0",
    b"Usage|user=9223372036854775808,system=0,maxrss=0,rchar=0,wchar=0,voluntary=0,forced=0",
])  # fmt: skip
def test_a_malformed_line_costs_itself(tmp_path: Path, line: bytes) -> None:
    trace = TraceBuilder().exec(SHELL, "/bin/sh").lines(SHELL, line).exit(SHELL, 3).trace()
    parsed = parse([trace], tmp_path)
    assert parsed.has_problems
    assert parsed.entries[1]["!"] == 3
    assert "a" not in parsed.entries[1]


def test_an_image_of_the_schema_without_usage_is_read(tmp_path: Path) -> None:
    trace = TraceBuilder().exec(SHELL, "/bin/sh").exit(SHELL).trace()
    image = make(tmp_path, trace)
    data = bytearray(image.read_bytes())
    assert data[8:12] == struct.pack("<I", header.SCHEMA_VERSION)
    data[8:12] = struct.pack("<I", 3)
    image.write_bytes(data)
    assert usage_of(image) == {(SHELL, 0): UNKNOWN, (SHELL, 1): UNKNOWN}
    assert open_database(tmp_path)["executions"].n_rows == 2


def test_a_usage_table_of_another_length_is_damage(tmp_path: Path) -> None:
    image = make(tmp_path, build())
    data = image.read_bytes()
    head = data.index(b'"usage", "rows": 6')
    broken = data[:head] + data[head:].replace(b'"rows": 6', b'"rows": 5', 1)
    image.write_bytes(broken)
    with pytest.raises(libetrace.error, match="usage"):
        usage_of(image)
