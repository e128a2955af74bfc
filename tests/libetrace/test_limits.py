# SPDX-License-Identifier: Apache-2.0
"""What an image cannot number is refused by name, never cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import parse_bytes, tables_of
from libetrace.convert.importer import Importer, JsonError
from libetrace.core import limits
from libetrace.trace.source import Source

from etrace.errors import EtraceError
from etrace.parse import parse_trace

FIRST, SECOND = 1 << 22 | 1, 2 << 22 | 2
TEXTS = {
    "strings": "more distinct strings than an image can number",
    "string_bytes": "a string that is longer than an image can hold",
    "processes": "more processes than an image can number",
    "executions": "more executions than an image can number",
    "opens": "more opened files than an image can number",
}
#: what the trace has of each; a string's length does not count its quotes
HAS = {"strings": 7, "string_bytes": 8, "processes": 2, "executions": 3, "opens": 2}


def trace() -> bytes:
    """Two processes, three executions, two opened files, seven strings of at most eight bytes."""
    t = TraceBuilder(cwd="/src").exec(FIRST, "/bin/cc", ["cc"], cwd="/src")
    t.use(FIRST, "/src/a.c").use(FIRST, "/src/b.c").comm(SECOND, "x")
    return t.trace()


@contextmanager
def lowered(name: str, ceiling: int) -> Iterator[None]:
    before = limits.lower(name, ceiling)
    try:
        yield
    finally:
        limits.lower(name, before)


def import_text(text: bytes) -> None:
    importer = Importer()
    importer.read_entries(Source.from_bytes(text))
    importer.columns()


@pytest.mark.parametrize("name", TEXTS)
def test_a_trace_beyond_a_limit_is_refused_by_its_name(name: str) -> None:
    with lowered(name, HAS[name] - 1), pytest.raises(limits.LimitError) as caught:
        tables_of([trace()])
    assert caught.value.message == f"{TEXTS[name]} ({HAS[name] - 1})"


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"processes"}))
def test_json_beyond_a_limit_is_refused_by_its_name(name: str) -> None:
    text = parse_bytes(trace())[0]
    with lowered(name, 1), pytest.raises(JsonError, match=TEXTS[name]):
        import_text(text)


def test_what_fits_exactly_is_taken() -> None:
    for name, n in HAS.items():
        with lowered(name, n):
            tables_of([trace()])


def test_the_command_says_which_limit_it_was(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(trace())
    with lowered("opens", 1), pytest.raises(EtraceError, match=TEXTS["opens"]):
        parse_trace([tmp_path / "t"], tmp_path / "t.json")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
