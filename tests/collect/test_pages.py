# SPDX-License-Identifier: Apache-2.0
"""Pages of the ring buffer: what the kernel writes into them, and what damage costs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from collect.collector import collect, replay
from collect.ring_buffer import (
    FORMAT,
    HEADER_BYTES,
    PADDING,
    PAGE_BYTES,
    PIECE,
    TIME_STAMP,
    Event,
    Instance,
    discarded,
    entry,
    event_piece,
    header_page,
    page,
    pages,
    plain_event,
    record,
    time_extend,
)

START = 72_000_000_000
UPID = 5 << 22 | 1


def close(at: int, cpu: int = 0) -> Event:
    return plain_event(UPID, START + at, cpu, "Close", {"fd": at})


def entries(*events: Event) -> bytes:
    return b"".join(entry(data) for event in events for data in event.records())


def lines(*events: Event) -> bytes:
    return b"".join(event.lines for event in events)


def saved(path: Path, *raw: bytes, page_bytes: int = PAGE_BYTES) -> Path:
    """Save an instance whose CPUs' files are given."""
    instance = Instance(path, page_bytes)
    instance.write_description()
    for number, content in enumerate(raw):
        (instance.cpu(number) / "trace_pipe_raw").write_bytes(content)
    return path


def test_entries_that_are_no_records_are_stepped_over(tmp_path: Path) -> None:
    one, two, three = close(1), close(2), close(3)
    other_event = entry(record(UPID, START, 0, b"x" * 200, type_id=5))
    tiny = entry(b"\x05\x00")  # shorter than a record, of another event
    raw = page(
        time_extend()
        + entries(one)
        + discarded(close(9).records()[0])
        + discarded(b"x" * 400)
        + other_event
        + time_extend(TIME_STAMP)
        + entries(two)
        + tiny
        + entries(three)
        + struct.pack("<I", PADDING)
        + b"\xff" * 100
    )
    done = replay(saved(tmp_path, raw))
    assert done.text == lines(one, two, three)
    assert (done.status, done.messages, done.stats["foreign_records"]) == (0, "", 2)


@pytest.mark.parametrize("text_bytes", range(0, 120, 3))
def test_short_and_long_entries_are_distinguished(tmp_path: Path, text_bytes: int) -> None:
    """Up to 112 bytes the length is in the entry's first word, else in the second."""
    event = plain_event(UPID, START, 0, "Comm", {"CN": b"c" * text_bytes})
    done = replay(saved(tmp_path, page(entries(event, close(7)))))
    assert done.text == lines(event, close(7))


@pytest.mark.parametrize("page_bytes", [4096, 8192, 65536])
def test_the_size_of_pages_is_what_header_page_says(tmp_path: Path, page_bytes: int) -> None:
    events = [close(at) for at in range(5000)]
    raw = pages((entries(event) for event in events), page_bytes=page_bytes)
    assert len(raw) > 2 * page_bytes
    done = replay(saved(tmp_path, raw, page_bytes=page_bytes))
    assert done.text == lines(*events)
    assert done.stats["pages"] == len(raw) // page_bytes


def test_a_full_last_entry_needs_no_padding(tmp_path: Path) -> None:
    first = entries(close(1))
    room = PAGE_BYTES - HEADER_BYTES - len(first)
    other = entry(record(UPID, START, 0, b"x" * (room - 8 - 32), type_id=5))
    raw = page(first + other) + page(entries(close(2)))
    assert len(first + other) == PAGE_BYTES - HEADER_BYTES
    assert replay(saved(tmp_path, raw)).text == lines(close(1), close(2))


@pytest.mark.parametrize(
    ("missed", "stored", "count"), [(41, True, 41), (1, True, 1), (0, True, 1), (9, False, 1)]
)
def test_records_that_were_overwritten_are_counted_and_said(
    tmp_path: Path, missed: int, stored: bool, count: int
) -> None:
    raw = page(entries(close(1)), missed=missed, stored=stored)
    done = replay(saved(tmp_path, raw))
    assert done.text == lines(close(1))
    assert (done.status, done.stats["overwritten_records"], done.stats["lost"]) == (2, count, count)
    agreeing = "1 record was overwritten" if count == 1 else f"{count} records were overwritten"
    assert agreeing in done.messages
    assert "overwrite" in done.messages


def damaged_pages() -> dict[str, bytes]:
    good = entries(close(1), close(2))
    return {
        "an entry longer than the page": page(good + struct.pack("<II", 0, 60000)),
        "a length below its own word": page(good + struct.pack("<II", 0, 3)),
        "a length without its word": page(good + struct.pack("<I", 1 << 5)),
        "padding longer than the page": page(good + struct.pack("<II", 1 << 5 | PADDING, 9999)),
        "a short entry cut by the end": page(good + struct.pack("<I", 1 << 5 | 28)),
        "a commit after the page": page(good, commit=PAGE_BYTES),
    }


@pytest.mark.parametrize("damage", damaged_pages())
def test_damage_costs_the_rest_of_a_page_and_says_where(tmp_path: Path, damage: str) -> None:
    before, after = page(entries(close(0))), page(entries(close(3)))
    raw = before + damaged_pages()[damage] + after
    done = replay(saved(tmp_path, raw, page(entries(close(4, cpu=1)))))
    assert done.text == lines(*(close(at) for at in range(4)), close(4, cpu=1))
    assert (done.status, done.stats["damaged_pages"], done.stats["lost"]) == (2, 1, 1)
    assert f"cpu 0: the page at byte {PAGE_BYTES} is damaged" in done.messages


@pytest.mark.parametrize("excess", [1, 8, 1 << 31])
def test_a_string_longer_than_its_piece_costs_its_record(tmp_path: Path, excess: int) -> None:
    piece = bytearray(event_piece("Comm", {"CN": b"c" * 8}))
    struct.pack_into("<I", piece, PIECE.size, 8 + excess)
    longer = entry(record(UPID, START, 0, bytes(piece)))
    done = replay(saved(tmp_path, page(entries(close(1)) + longer + entries(close(2)))))
    assert done.text == lines(close(1), close(2))
    assert (done.status, done.stats["lost"]) == (2, 1)


@pytest.mark.parametrize("missing", [1, PAGE_BYTES - HEADER_BYTES - 40, PAGE_BYTES - 3])
def test_a_file_cut_inside_a_page_gives_what_is_there(tmp_path: Path, missing: int) -> None:
    whole, last = page(entries(close(1))), page(entries(*(close(at) for at in range(2, 60))))
    done = replay(saved(tmp_path, (whole + last)[:-missing]))
    expected = lines(*(close(at) for at in range(1, 60)))
    assert expected.startswith(done.text)
    assert done.text.startswith(lines(close(1)))
    assert done.stats["damaged_pages"] == (missing != 1)


def bad_records() -> dict[str, bytes]:
    good = close(5).records()[0]
    payload = bytearray(good)
    payload[32] = 77  # kind of the first piece
    return {
        "payload after the entry": good[:28] + struct.pack("<I", 32 | 4000 << 16) + good[32:],
        "payload far outside": good[:28] + struct.pack("<I", 60000 | 4 << 16) + good[32:],
        "shorter than its fields": good[:20],
        "a time before the clock began": good[:16] + struct.pack("<q", -5) + good[24:],
        "an unknown piece": bytes(payload),
        "half a piece": good[:28] + struct.pack("<I", 32 | 12 << 16) + good[32:],
    }


@pytest.mark.parametrize("kind", bad_records())
def test_a_record_that_makes_no_sense_is_left_out_alone(tmp_path: Path, kind: str) -> None:
    raw = page(entries(close(1)) + entry(bad_records()[kind]) + entries(close(9)))
    done = replay(saved(tmp_path, raw))
    assert done.text == lines(close(1), close(9))
    assert (done.status, done.stats["malformed_records"], done.stats["lost"]) == (2, 1, 1)
    assert "cpu 0" in done.messages
    assert "is malformed" in done.messages


def test_bytes_after_the_payload_do_not_matter(tmp_path: Path) -> None:
    raw = page(entries(close(1)) + entry(close(5).records()[0] + b"junk" * 3) + entries(close(9)))
    done = replay(saved(tmp_path, raw))
    assert (done.status, done.text) == (0, lines(close(1), close(5), close(9)))


def broken(path: Path, file: str, text: str) -> Path:
    saved(path, page(entries(close(1))))
    (path / file).write_text(text)
    return path


EVENT_DIR = "events/etrace/etrace_record"


SMALL_COMMIT = header_page().replace("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:2")
WIDE_CPU = FORMAT.replace("u16 cpu;\toffset:24;\tsize:2", "u32 cpu;\toffset:24;\tsize:4")


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("events/header_page", "nothing", "data"),
        ("events/header_page", header_page().replace("size:4080", "size:1"), "data"),
        ("events/header_page", SMALL_COMMIT, "commit"),
        ("events/header_event", "type_len : 6 bits", "type_len"),
        (f"{EVENT_DIR}/format", FORMAT.replace("time_ns", "clock"), "time_ns"),
        (f"{EVENT_DIR}/format", WIDE_CPU, "cpu"),
        (f"{EVENT_DIR}/id", "", "number"),
    ],
)
def test_a_layout_that_is_not_understood_is_refused_by_its_name(
    tmp_path: Path, file: str, text: str, named: str
) -> None:
    done = replay(broken(tmp_path, file, text))
    assert (done.status, done.text) == (125, b"")
    assert file in done.messages
    assert named in done.messages


def test_fields_are_where_the_format_says(tmp_path: Path) -> None:
    """The module may get fields: a record with another one in front reads the same."""
    instance = saved(tmp_path, b"")
    moved = FORMAT
    for name, offset in (("payload", 28), ("flags", 26), ("cpu", 24), ("time_ns", 16), ("upid", 8)):
        at = moved.index(f" {name};") if name != "payload" else moved.index("payload;")
        head, tail = moved[:at], moved[at:]
        moved = head + tail.replace(f"offset:{offset};", f"offset:{offset + 8};", 1)
    (instance / EVENT_DIR / "format").write_text(moved)
    data = close(5).records()[0]
    location = struct.pack("<I", 40 | (len(data) - 32) << 16)
    shifted = data[:8] + bytes(8) + data[8:28] + location + data[32:]
    (instance / "per_cpu/cpu0/trace_pipe_raw").write_bytes(page(entry(shifted)))
    assert replay(instance).text == lines(close(5))


def test_a_missing_instance_is_said_with_what_to_do(tmp_path: Path) -> None:
    done = collect("--tracefs", tmp_path, "--instance", "etrace")
    assert done.status == 125
    assert f"no ftrace instance '{tmp_path}/instances/etrace'" in done.messages
    assert "etrace start" in done.messages
    saved(tmp_path / "instances/etrace", page(b""))
    (tmp_path / "instances/etrace" / EVENT_DIR / "format").unlink()
    assert "modprobe etrace" in collect("--tracefs", tmp_path).messages


@pytest.mark.parametrize("name", ["", "..", "a/b", "../../etc"])
def test_an_instance_is_a_name_not_a_path(tmp_path: Path, name: str) -> None:
    done = collect("--tracefs", tmp_path, "--instance", name)
    assert done.status == 125
    assert "--instance" in done.messages
