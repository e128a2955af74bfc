# SPDX-License-Identifier: Apache-2.0
"""Where buffers are in a log, also when what says so is damaged or gone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.xray import grammar
from xray import samples
from xray.builder import LogBuilder

from etrace.xray.log import Log, read_bytes
from etrace.xray.source import describe


def five_buffers(version: int = 5) -> LogBuilder:
    builder = LogBuilder(version)
    for thread in range(1, 6):
        builder.thread(thread, wall_us=thread).cpu(0, 100 * thread).enter(thread, 1).exit(thread, 1)
    return builder


@pytest.mark.parametrize("more", [1, 100, 2**20])
def test_a_buffer_that_says_too_much_costs_no_other(more: int) -> None:
    data = bytearray(five_buffers().build())
    extents = int.from_bytes(data[33:41], "little")
    data[33:41] = (extents + more).to_bytes(8, "little")
    log = read_bytes(bytes(data))
    assert [(t.thread, t.n_records) for t in log.threads] == [(i, 2) for i in range(1, 6)]
    assert log.damage.problems == [("buffer-too-long", 32, 0, 0)]
    assert grammar.verify(bytes(data)) == [(32, "a buffer that is shorter than its length")]


def places(log: Log) -> list[tuple[int, int]]:
    """Return thread and number of records of each thread."""
    return [(t.thread, t.n_records) for t in log.threads]


FIVE = [(thread, 2) for thread in range(1, 6)]


def with_extents(data: bytes, n_bytes: int, offset: int = 32) -> bytes:
    return data[: offset + 1] + n_bytes.to_bytes(8, "little") + data[offset + 9 :]


def extents_of(data: bytes) -> list[int]:
    """Return the offsets of the extents records of a sound log."""
    return [block[0] - 16 for block in read_bytes(data).raw.blocks]


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("missing", [1, 8, 12, 16, 32, 48, 59, 80])
def test_a_buffer_that_says_too_little_loses_nothing(
    version: int, number: int, missing: int
) -> None:
    data = five_buffers(version).build()
    offset, size = extents_of(data)[number], 64 if version == 2 else 80
    log = read_bytes(with_extents(data, max(size - missing, 0), offset), "l")
    assert places(log) == FIVE
    assert list(log.records["tsc"]) == list(read_bytes(data).records["tsc"])
    text = "the buffer's length is too small; read up to the next buffer"
    assert list(describe(log.damage, "l")) == [f"l: offset {offset}: {text}"]
    assert not log.damage.is_lossy


def test_strict_reading_refuses_a_buffer_that_says_too_little() -> None:
    data = with_extents(five_buffers().build(), 64)
    assert grammar.verify(data) == [(112, "bytes between buffers: 16 bytes")]


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("byte", [0x00, 0x06, 0x07, 0x0E, 0x7F, 0xFF])
def test_a_buffer_whose_extents_record_is_damaged_keeps_its_thread(version: int, byte: int) -> None:
    data = bytearray(five_buffers(version).build())
    offset = extents_of(bytes(data))[2]
    data[offset] = byte
    log = read_bytes(bytes(data))
    assert places(log) == FIVE
    assert log.damage.problems == [("no-extents", offset, 16, 0)]


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("grows", [False, True])
def test_a_buffer_inside_another_one_keeps_its_thread(version: int, grows: bool) -> None:
    """Its extents record is lost, and the one before may say that it holds both."""
    data = five_buffers(version).build()
    first, second, third = extents_of(data)[:3]
    lost = data[:second] + data[second + 16 :]
    if grows:
        lost = with_extents(lost, third - 16 - (first + 16), first)
    log = read_bytes(lost, "l")
    assert places(log) == FIVE
    assert list(describe(log.damage, "l")) == [
        f"l: offset {second}: a buffer without a BufferExtents record; read up to the next buffer"
    ]
    assert log.damage.is_lossy


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("lost", [16, 32, 48])
def test_records_of_a_buffer_that_lost_its_thread_are_no_other_threads(
    version: int, lost: int
) -> None:
    """After the extents record the NewBuffer (and the WallTime) is lost too."""
    data = five_buffers(version).build()
    first, second, third = extents_of(data)[:3]
    data = data[:second] + data[second + lost :]
    log = read_bytes(with_extents(data, third - lost - (first + 16), first))
    wanted = FIVE if lost == 16 else [(0, 2), (1, 2), (3, 2), (4, 2), (5, 2)]
    assert sorted(places(log)) == wanted
    kinds = ["no-extents"] if lost == 16 else ["no-extents", "no-new-buffer"]
    assert sorted(p[0] for p in log.damage.problems) == kinds


def test_a_buffer_is_found_after_garbage_in_another_one() -> None:
    data = five_buffers().build()
    first, second, third = extents_of(data)[:3]
    data = data[: second - 8] + b"\xff" * 21 + data[second + 16 :]
    log = read_bytes(with_extents(data, third - 3 - (first + 16), first))
    assert places(log) == [(1, 1), *FIVE[1:]]
    assert log.damage.is_lossy


@pytest.mark.parametrize(
    ("kind", "layout", "name"), [(0, "i", "NewBuffer"), (4, "qi", "WallTime"), (9, "i", "Pid")]
)
def test_a_preamble_record_inside_a_buffer_is_reported(kind: int, layout: str, name: str) -> None:
    builder = LogBuilder().thread(1).cpu(0, 100).enter(1, 1)
    builder.metadata(kind, layout, *range(7, 7 + len(layout))).exit(1, 1).cpu(1, 200).enter(1, 1)
    log = read_bytes(builder.build(), "l")
    assert places(log) == [(1, 3)]
    assert list(describe(log.damage, "l")) == [
        f"l: offset 120: {name} record inside a buffer; 16 bytes skipped"
    ]
    assert grammar.verify(builder.build()) == [(120, f"{name} after Function with arguments")]


def test_what_looks_like_a_buffer_in_a_payload_is_none() -> None:
    inner = five_buffers().build()[32:]
    data = LogBuilder().thread(9).cpu(0, 100).custom(inner, 5).enter(1, 1).build()
    log = read_bytes(data)
    assert (places(log), log.damage.n_problems) == ([(9, 2)], 0)
    assert [event.data for event in log.events] == [inner]


def test_a_buffer_of_a_thread_is_read_whose_number_makes_it_begin_like_the_header() -> None:
    builder = LogBuilder(1, hz=int.from_bytes(b"\xa5" * 8), buffer_bytes=400)
    for thread in (1, 256):
        builder.thread(thread).cpu(0, 100).enter(thread, 1)
    data = bytearray(builder.build())
    data[4:8] = b"\0\xa5\xa5\xa5"
    assert data[32 + 400 :].startswith(data[:16])
    assert places(read_bytes(bytes(data))) == [(1, 1), (256, 1)]


@pytest.mark.parametrize("cut", [8, 13, 16, 200])
def test_a_version_1_log_that_lost_bytes_keeps_the_buffers_after_them(cut: int) -> None:
    """All that follow have moved: they are no more where their size says."""
    builder = LogBuilder(1, buffer_bytes=400)
    for thread in range(1, 6):
        builder.thread(thread, wall_us=thread).cpu(0, 100)
        for _ in range(20):
            builder.enter(thread, 1)
    whole = builder.build()
    at = 32 + 2 * 400 - 200  # in the second buffer
    log = read_bytes(whole[: at - cut] + whole[at:])
    assert [t for t in places(log) if t[0] not in (0, 2)] == [(i, 20) for i in (1, 3, 4, 5)]
    assert "buffer-inside" in [p[0] for p in log.damage.problems]
    assert log.damage.is_lossy


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from([2, 3, 5]), st.integers(0, 4), st.integers(0, 2**64 - 1) | st.integers(0, 999)
)
def test_whatever_an_extents_record_says_no_thread_gets_another_ones_records(
    version: int, number: int, n_bytes: int
) -> None:
    data = five_buffers(version).build()
    log = read_bytes(with_extents(data, n_bytes, extents_of(data)[number]))
    assert places(log) == FIVE


@pytest.mark.parametrize("big", [False, True])
def test_a_version_1_log_without_a_size_of_buffers_loses_none(big: bool) -> None:
    data = bytearray(samples.synthetic("v1_be" if big else "v1_full"))
    whole = read_bytes(bytes(data))
    data[16:24] = bytes(8)
    log = read_bytes(bytes(data))
    assert list(log.records["tsc"]) == list(whole.records["tsc"])
    assert [p[:2] for p in log.damage.problems] == [("no-buffer-size", 16)]
