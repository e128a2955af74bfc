# SPDX-License-Identifier: Apache-2.0
"""Written lines -> the table `written` and JSON; traces without them, malformed ones."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from builders import TraceBuilder
from parse.parsing import WAYS, Way, parse, parse_by_reference

from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.store import open_database
from etrace.nfsdb.to_json import write_json
from etrace.parse import parse_trace

SHELL, CHILD = 5, 1 << 22 | 6
ODD = b"\xff\x1b[31mred\n\n\x00 end"


def build() -> bytes:
    """Return a shell that writes before its exec and after it, and a child that writes much."""
    trace = TraceBuilder("/w").exec(SHELL, "/bin/sh").fork(SHELL, CHILD)
    trace.written(CHILD, "in the fork\n").exec(CHILD, "/bin/cc")
    trace.written(CHILD, "out\n", fd=1).written(CHILD, b"a" * 899).written(CHILD, ODD, cut=1 << 40)
    trace.exit(CHILD, 1)
    trace.written(SHELL, "before\n").usage(SHELL, 1, 2).exec(SHELL, "/bin/ld")
    return trace.written(SHELL, "", cut=7).exit(SHELL).trace()


#: by (upid, index)
WRITTEN = {
    (SHELL, 1): [(2, 0, b"before\n")],
    (SHELL, 2): [(2, 7, b"")],
    (CHILD, 0): [(2, 0, b"in the fork\n")],
    (CHILD, 1): [(1, 0, b"out\n"), (2, 0, b"a" * 899), (2, 1 << 40, ODD)],
}


def written_of(directory: Path) -> dict[tuple[int, int], list[tuple[int, int, bytes]]]:
    image = open_database(directory)
    executions, written = image["executions"], image["written"]
    found: dict[tuple[int, int], list[tuple[int, int, bytes]]] = {}
    for i, row in enumerate(written["execution"]):
        text = image.string(written["string"][i])
        piece = (written["descriptor"][i], written["cut_bytes"][i], text)
        found.setdefault((executions["upid"][row], executions["index"][row]), []).append(piece)
    return found


def make(directory: Path, trace: bytes) -> Path:
    (directory / ".nfsdb").write_bytes(trace)
    parse_trace([directory / ".nfsdb"], directory / ".nfsdb.json")
    return directory / ".nfsdb.json"


def test_executions_have_their_pieces_in_order(tmp_path: Path) -> None:
    make(tmp_path, build())
    assert written_of(tmp_path) == WRITTEN


def test_json_holds_them_and_gives_them_back(tmp_path: Path) -> None:
    path = make(tmp_path, build())
    before = path.read_bytes()
    by_key = {(entry["p"], entry["x"]): entry.get("y") for entry in json.loads(before)}
    assert by_key[CHILD, 1][-1] == {
        "d": 2, "c": 1 << 40, "t": ODD.decode(errors="surrogateescape"),
    }  # fmt: skip
    assert by_key[SHELL, 1] == [{"d": 2, "t": "before\n"}]
    assert by_key[SHELL, 0] is None
    build_image(name_files(tmp_path / ".nfsdb"))
    assert written_of(tmp_path) == WRITTEN
    again = io.BytesIO()
    write_json(open_database(tmp_path), again)
    assert again.getvalue() == before


@pytest.mark.parametrize("way", WAYS)
def test_they_are_as_the_reference_parser_has_them(tmp_path: Path, way: Way) -> None:
    assert parse([build()], tmp_path, way).raw == parse_by_reference([build()]).raw


def test_a_trace_without_them_makes_no_table(tmp_path: Path) -> None:
    make(tmp_path, TraceBuilder().exec(SHELL, "/bin/sh").exit(SHELL).trace())
    assert "written" not in open_database(tmp_path).tables


@pytest.mark.parametrize("line", [
    b"Written|fd=3,cut=0,size=1",
    b"Written|fd=0,cut=0,size=1",
    b"Written|fd=2,cut=-1,size=1",
    b"Written|fd=2,size=1",
    b"Written|fd=2,cut=9223372036854775808,size=1",
])  # fmt: skip
def test_a_malformed_line_costs_itself(tmp_path: Path, line: bytes) -> None:
    trace = TraceBuilder().exec(SHELL, "/bin/sh").lines(SHELL, line, b"OU|x").exit(SHELL, 3)
    parsed = parse([trace.trace()], tmp_path)
    assert parsed.has_problems
    assert parsed.entries[1]["!"] == 3
    assert "y" not in parsed.entries[1]
