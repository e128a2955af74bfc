# SPDX-License-Identifier: Apache-2.0
"""clang's own time traces, inside the execution that wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from databases import database_of
from libetrace.image.file import Image
from timing.builds import US, WRITE, Story

from etrace.timeline.slices import Lanes, slices
from etrace.timeline.time_trace import TimeTraces

MAKE, CLANG = (n << 22 | n for n in (1, 2))
EVENTS = [
    {"ph": "X", "ts": 200, "dur": 100, "name": "Backend", "tid": 1},
    {"ph": "X", "ts": 10, "dur": 290, "name": "ExecuteCompiler", "tid": 1},
    {"ph": "b", "ts": 20, "id": 7, "name": "Source", "args": {"detail": "a.h"}},
    {"ph": "e", "ts": 50, "id": 7, "name": "Source"},
    {"ph": "X", "ts": 0, "dur": 290, "name": "Total Backend", "tid": 2},
    {"ph": "M", "name": "process_name"},
]


def image_of(folder: Path, text: str) -> Image:
    """Return a build of clang from 100 to 500 us, with a time trace of this text."""
    (folder / "a.json").write_text(text)
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    argv = ["clang", "-ftime-trace", "-c", "a.c"]
    story.at(100).fork(MAKE, CLANG).exec(CLANG, "/usr/bin/clang", argv)
    story.at(490).use(CLANG, str(folder / "a.json"), flags=WRITE)
    story.at(500).exit(CLANG)
    story.at(510).exit(MAKE)
    return database_of(folder, story.builder.trace())


def shown(image: Image) -> list[tuple[int, int, int, str]]:
    found = slices(image, Lanes.TREE, TimeTraces(image))
    return [(s.lane, s.start_ns // US, s.end_ns // US, s.name) for s in found]


EXECUTIONS = [(0, 0, 510, "make"), (0, 100, 500, "clang a.c")]


def test_its_phases_lie_inside_the_compilation(tmp_path: Path) -> None:
    assert shown(image_of(tmp_path, json.dumps({"traceEvents": EVENTS}))) == [
        *EXECUTIONS,
        (0, 110, 400, "ExecuteCompiler"),
        (0, 120, 150, "Source"),
        (0, 300, 400, "Backend"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"traceEvents": {}}', '{"traceEvents": [1, {}, {"ph": "X"}]}', "[" * 100000,
        '{"traceEvents": [{"ph": "X", "ts": -1, "dur": 1, "name": "a"}]}',
        '{"traceEvents": [{"ph": "X", "ts": NaN, "dur": Infinity, "name": "a"}]}',
        '{"traceEvents": [{"ph": "X", "ts": 1e99, "dur": true, "name": "a"}]}',
    ],
)  # fmt: skip
def test_what_is_no_time_trace_any_more_is_left_out(tmp_path: Path, text: str) -> None:
    assert shown(image_of(tmp_path, text)) == EXECUTIONS


def test_what_lies_beyond_the_execution_is_cut(tmp_path: Path) -> None:
    events = [{"ph": "X", "ts": 100, "dur": 9000, "name": "long"},
              {"ph": "X", "ts": 8000, "dur": 1, "name": "late"}]  # fmt: skip
    image = image_of(tmp_path, json.dumps({"traceEvents": events}))
    assert shown(image) == [*EXECUTIONS, (0, 200, 500, "long")]
