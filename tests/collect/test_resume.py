# SPDX-License-Identifier: Apache-2.0
"""--continue: at the end of a trace whose collector was killed, whatever it left of a write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from collect.collector import Collected, collect, decompressed, replay
from collect.ring_buffer import Event, Instance, plain_event
from event_lines import Value

START = 72_000_000_000
FIRST = b"INITCWD=/\n"


def opened(at: int) -> Event:
    values: dict[str, Value] = {"FN": b"/a", "FO": b"a", "flags": 0, "mode": 0, "fd": 3}
    return plain_event(1 << 22 | 7, START + at, 0, "Open", values)


BEGUN = [opened(at) for at in range(3)]
REST = [opened(at) for at in range(3, 6)]
TEXT = FIRST + b"".join(event.lines for event in BEGUN)
REST_TEXT = b"".join(event.lines for event in REST)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    made = Instance(tmp_path / "instance")
    made.add_events(0, REST)
    return made.write()


def kept_of(left: bytes) -> bytes:
    """Return what stays of a beginning of TEXT."""
    if left.endswith(b"\n"):
        return left  # a line that ends shows nothing of those that should follow it
    *lines, half = left.splitlines(keepends=True) or [b""]
    ends = [0, len(FIRST)]
    for event in BEGUN:
        ends.append(ends[-1] + len(event.lines))
    whole = [end for end in ends if end <= len(left)]
    # whether the half line begins another event than the line before cannot be seen
    doubtful = b"!" not in half and lines[-1:] and lines[-1].startswith(half)
    if doubtful and sum(map(len, lines)) == whole[-1]:
        return left[: whole[-2]]
    return left[: whole[-1]]


def test_what_is_left_of_an_event_goes_and_the_rest_follows(tmp_path: Path, instance: Path) -> None:
    out = tmp_path / "trace"
    for size in range(len(TEXT) + 1):
        left = TEXT[:size]
        out.write_bytes(left)
        assert replay(instance, "--continue", "-o", out).status == 0
        assert out.read_bytes() == kept_of(left) + REST_TEXT, left


def test_the_stats_mentions_what_was_added(tmp_path: Path, instance: Path) -> None:
    out = tmp_path / "trace"
    out.write_bytes(TEXT)
    stats = replay(instance, "--continue", "-o", out).stats
    assert (stats["events"], stats["lines"], stats["bytes"]) == (3, 9, len(REST_TEXT))


def test_a_descriptor_is_continued_as_well(tmp_path: Path, instance: Path) -> None:
    out = tmp_path / "trace"
    half = REST[0].lines[:-1]
    for flags in (os.O_RDWR, os.O_RDWR | os.O_APPEND):
        out.write_bytes(TEXT + half)
        fd = os.open(out, flags)
        try:
            done = collect("--raw", instance, "--continue", "--output-fd", str(fd), pass_fds=[fd])
        finally:
            os.close(fd)
        assert done.status == 0
        assert out.read_bytes() == TEXT + REST_TEXT


def test_nothing_is_added_to_a_trace_that_is_only_cut(tmp_path: Path) -> None:
    out = tmp_path / "trace"
    out.write_bytes(TEXT + REST_TEXT[:-1])
    assert collect("--continue", "-o", out, "/dev/null").status == 0
    assert out.read_bytes() == TEXT + REST[0].lines + REST[1].lines


def refused(done: Collected, out: Path, content: bytes) -> str:
    assert done.status == 125
    assert out.read_bytes() == content
    return done.messages


def test_what_is_not_a_trace_is_left_alone(tmp_path: Path, instance: Path) -> None:
    out, link = tmp_path / "trace", tmp_path / "link"
    done = replay(instance, "--continue", "-o", out)
    assert (done.status, out.exists()) == (125, False)
    assert "No such file" in done.messages
    out.write_bytes(TEXT)
    link.symlink_to(out)
    assert "symbolic link" in refused(replay(instance, "--continue", "-o", link), out, TEXT)
    said = refused(replay(instance, "--continue", "--zstd", "-o", out), out, TEXT)
    assert "not a zstd file at byte 0" in said
    os.mkfifo(tmp_path / "pipe")
    done = replay(instance, "--continue", "-o", tmp_path / "pipe")
    assert (done.status, "not a regular file" in done.messages) == (125, True)


# --- zstd ---


@pytest.fixture
def frames(tmp_path: Path, compressing: None) -> list[bytes]:
    """Return the frames of a trace: of TEXT and of an event more."""
    made = []
    for name, events in (("one", BEGUN), ("two", [opened(90)])):
        instance = Instance(tmp_path / name)
        instance.add_events(0, events)
        out = tmp_path / f"{name}.zst"
        assert replay(instance.write(), "--zstd", "-o", out).status == 0
        made.append(out.read_bytes())
    return made


def test_a_frame_that_is_cut_anywhere_goes(
    tmp_path: Path, instance: Path, frames: list[bytes]
) -> None:
    out = tmp_path / "trace.zst"
    lines = b"".join(event.lines for event in BEGUN)
    for size in range(len(frames[1]) + 1):
        out.write_bytes(frames[0] + frames[1][:size])
        assert replay(instance, "--continue", "--zstd", "-o", out).status == 0
        more = opened(90).lines if size == len(frames[1]) else b""
        assert decompressed(out) == lines + more + REST_TEXT


def test_a_damaged_frame_is_not_cut_off(
    tmp_path: Path, instance: Path, frames: list[bytes]
) -> None:
    out = tmp_path / "trace.zst"
    content = frames[0] + b"no frame" + frames[1]
    out.write_bytes(content)
    said = refused(replay(instance, "--continue", "--zstd", "-o", out), out, content)
    assert f"not a zstd file at byte {len(frames[0])}" in said
    said = refused(replay(instance, "--continue", "-o", out), out, content)
    assert "is compressed: give --zstd as well" in said
