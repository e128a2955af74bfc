# SPDX-License-Identifier: Apache-2.0
"""A trace is parsed to the tables that its JSON is imported to, column for column."""

from __future__ import annotations

import itertools
import lzma
import os
import resource
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import event_streams
import pytest
from builders import TraceBuilder
from databases import GOLDEN, tables_of, texts_of
from hypothesis import HealthCheck, example, given, settings
from libetrace.convert.importer import Importer
from libetrace.core.errors import Error
from libetrace.image.columns import COLUMNS
from libetrace.image.file import FilePiece, NewTable, new_tables, open_image, write_image
from libetrace.trace.parser import parse
from libetrace.trace.source import Source

from etrace.parse.driver import products

SEEDS = Path(__file__).parents[1] / "fuzz" / "corpus" / "parser"
THOROUGH = settings(
    max_examples=200,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def bytes_of(piece: Any) -> bytes:
    return piece.read() if isinstance(piece, FilePiece) else bytes(piece)


def contents(tables: Sequence[NewTable]) -> dict[str, bytes]:
    """Return the bytes of each column."""
    return {
        f"{table.name}.{column.name}": b"".join(map(bytes_of, column.pieces))
        for table in tables
        for column in table.columns
    }


def imported(texts: Sequence[bytes]) -> list[NewTable]:
    """Import entries, environment and mounts."""
    importer = Importer()
    importer.read_entries(Source.from_bytes(texts[0]))
    importer.read_environment(Source.from_bytes(texts[1]))
    importer.read_mounts(Source.from_bytes(texts[2]))
    return new_tables(importer.columns(), importer.products)


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


def streamed(trace: bytes, *, jobs: int, chunk_bytes: int) -> list[NewTable]:
    """Parse a trace that comes through a pipe, written in uneven pieces."""
    read_end, write_end = os.pipe()
    writer = threading.Thread(target=write_pieces, args=(write_end, trace))
    writer.start()
    try:
        source = Source.stream(read_end)
        columns, counts = parse(source, jobs=jobs, chunk_bytes=chunk_bytes, stat=False)
    finally:
        os.close(read_end)
        writer.join()
    assert counts["bytes"] == len(trace)
    return new_tables(columns, products(counts))


def write_pieces(fd: int, trace: bytes) -> None:
    with open(fd, "wb", buffering=0) as pipe:
        at = 0
        for size in itertools.cycle([1, 4096, 37, 70_000]):
            if at >= len(trace):
                return
            at += pipe.write(trace[at : at + size])


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("chunk_bytes", [1, 300, 100_000, 0])
def test_a_stream_gives_the_tables_of_the_file(jobs: int, chunk_bytes: int) -> None:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    trace = trace[: len(trace) // 4] if chunk_bytes in (1, 300) else trace
    expected = contents(tables_of([trace])[0])
    assert contents(streamed(trace, jobs=jobs, chunk_bytes=chunk_bytes)) == expected


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_a_stream_that_ends_anywhere_gives_the_tables_of_the_file(path: Path) -> None:
    trace = path.read_bytes()
    for size in range(0, len(trace) + 1, max(1, len(trace) // 10)):
        expected = contents(tables_of([trace[:size]])[0])
        assert contents(streamed(trace[:size], jobs=2, chunk_bytes=50)) == expected


def test_a_stream_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(Error, match="cannot be read: Is a directory"):
        parse(Source.stream(directory))
    os.close(directory)


def test_a_string_that_begins_empty_goes_on_in_the_next_chunk() -> None:
    trace = (
        b"1,0,1,1!Open|fnamesize=1,forigsize=2,flags=0,mode=0,fd=3\n1,0,1,1!FN|\n1,0,1,1!Cont|\n"
        b"1,0,1,1!Cont_end\n1,0,1,1!FO[0]\n1,0,1,1!FO[1]\n1,0,1,1!FO[2]/a\n1,0,1,1!FO_end\n"
    )
    tables, counts = tables_of([trace], chunk_bytes=1)
    assert contents(tables) == contents(tables_of([trace])[0])
    assert [count for count, _ in counts["problems"] if count] == []
    assert contents(tables)["strings.bytes"] == b"\n/a"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("budget", [0, 300_000])
def test_what_lies_in_a_file_gives_the_same_image(tmp_path: Path, jobs: int, budget: int) -> None:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    with (tmp_path / "spilled").open("w+b") as file:
        source = Source.from_bytes(trace)
        columns, counts = parse(
            source, jobs=jobs, chunk_bytes=50_000, stat=False, file=file, budget=budget
        )
        tables = new_tables(columns, products(counts))
        assert any(isinstance(piece, FilePiece) for piece in columns[opens_column()])
        assert contents(tables) == contents(tables_of([trace])[0])
        write_image(tmp_path / "a.img", {}, tables)
    write_image(tmp_path / "b.img", {}, tables_of([trace])[0])
    assert (tmp_path / "a.img").read_bytes() == (tmp_path / "b.img").read_bytes()
    assert open_image(tmp_path / "a.img")["opens"].n_rows == 3598


def spilled(trace: bytes) -> dict[str, bytes]:
    """Return the tables when nothing may stay in memory: uses of a process are folded at once."""
    with open(os.memfd_create("spilled"), "w+b") as file:  # noqa: PTH123  a descriptor
        columns, counts = parse(Source.from_bytes(trace), stat=False, file=file, budget=0)
        return contents(new_tables(columns, products(counts)))


@THOROUGH
@given(event_streams.inputs(event_streams.OUT_OF_ORDER))
def test_folded_uses_give_the_same_tables(inputs: list[bytes]) -> None:
    trace = b"".join(inputs)
    assert spilled(trace) == contents(tables_of([trace])[0])


@pytest.mark.parametrize("flags", [[os.O_RDONLY], [os.O_WRONLY | os.O_TRUNC], [0, 0, os.O_RDWR]])
def test_a_process_that_uses_two_files_again_and_again_has_two_opens(flags: list[int]) -> None:
    trace = TraceBuilder()
    for number in range(500):
        trace.open(5, f"/{number % 2}", flags=flags[number % len(flags)])
        if number % 3 == 0:
            trace.dup(5, 3, 4)
        trace.close(5).close(5, 4)
    found = spilled(trace.trace())
    assert found == contents(tables_of([trace.trace()])[0])
    assert len(found["opens.mode"]) == 2


def opens_column() -> int:
    """Return the number of a column that has a row for each opened file."""
    return [column[:2] for column in COLUMNS].index(("opens", "path"))


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with (
            (tmp_path / "spilled").open("w+b") as file,
            pytest.raises(OSError, match="File too large"),
        ):
            parse(Source.from_bytes(trace), stat=False, file=file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
