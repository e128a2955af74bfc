# SPDX-License-Identifier: Apache-2.0
"""A trace is parsed to the tables that its JSON is imported to, column for column."""

from __future__ import annotations

import lzma
import os
from collections.abc import Sequence
from pathlib import Path

import event_streams
import pytest
from hypothesis import HealthCheck, example, given, settings
from libetrace.convert.importer import Importer
from libetrace.image.file import NewTable, new_tables
from libetrace.trace.source import Source
from trace_texts import tables_of, texts_of

GOLDEN = Path(__file__).parents[1] / "golden"
SEEDS = Path(__file__).parents[1] / "fuzz" / "corpus" / "parser"
THOROUGH = settings(
    max_examples=200,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def contents(tables: Sequence[NewTable]) -> dict[str, bytes]:
    """Return the bytes of each column."""
    return {
        f"{table.name}.{column.name}": b"".join(bytes(piece) for piece in column.pieces)
        for table in tables
        for column in table.columns
    }


def imported(texts: Sequence[bytes]) -> list[NewTable]:
    """Import entries, environment and mounts."""
    importer = Importer()
    importer.read_entries(Source.from_bytes(texts[0]))
    importer.read_environment(Source.from_bytes(texts[1]))
    importer.read_mounts(Source.from_bytes(texts[2]))
    return new_tables(importer.columns())


def check(inputs: list[bytes], *, stat: bool = False) -> None:
    """Compare the tables of a trace with those of its JSON, on one thread and on two."""
    tables, _ = tables_of(inputs, stat=stat)
    made = contents(tables)
    assert contents(imported(texts_of(tables))) == made
    assert contents(tables_of(inputs, jobs=2, chunk_bytes=300, stat=stat)[0]) == made


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.nfsdb.xz")), ids=lambda path: path.name)
@pytest.mark.parametrize("stat", [False, True])
def test_a_sample_gives_the_tables_of_its_json(path: Path, stat: bool) -> None:
    check([lzma.decompress(path.read_bytes())], stat=stat)


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_a_trace_of_the_corpus_gives_the_tables_of_its_json(path: Path) -> None:
    trace = path.read_bytes()
    for size in range(0, len(trace) + 1, max(1, len(trace) // 20)):
        check([trace[:size]])


@THOROUGH
@given(event_streams.inputs(event_streams.OUT_OF_ORDER))
def test_any_trace_gives_the_tables_of_its_json(inputs: list[bytes]) -> None:
    check(inputs)


@THOROUGH
@given(event_streams.damaged())
@example([b""])
@example([b"INITCWD=/"])
@example([b"", b"INITCWD=/w\n", b""])
def test_any_damaged_trace_gives_the_tables_of_its_json(inputs: list[bytes]) -> None:
    check(inputs)
