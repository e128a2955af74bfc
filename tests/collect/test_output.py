# SPDX-License-Identifier: Apache-2.0
"""Where the trace goes: files, descriptors, full disks, compression, stats."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest
from collect.collector import build, collect, decompressed, program, replay
from collect.ring_buffer import Event, Instance, exec_event, plain_event
from event_lines import Value

START = 72_100_000_000  # all times have as many digits


def events(n: int) -> list[Event]:
    name = b"/usr/include/x86_64-linux-gnu/bits/types.h"
    values: dict[str, Value] = {"FN": name, "FO": name, "flags": 524288, "mode": 0, "fd": 3}
    return [plain_event(1 << 22 | 7, START + at, 0, "Open", values) for at in range(n)]


def lines(of: list[Event]) -> bytes:
    return b"".join(event.lines for event in of)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    made = Instance(tmp_path / "instance")
    made.add_events(0, events(4000))
    return made.write()


WHOLE = lines(events(4000))


def test_an_output_file_is_made_and_never_overwritten(tmp_path: Path, instance: Path) -> None:
    out = tmp_path / "trace"
    assert replay(instance, "-o", out).status == 0
    assert out.read_bytes() == WHOLE
    again = replay(instance, "-o", out)
    assert again.status == 125
    assert f"'{out}' exists already" in again.messages
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize("path", ["/proc/self/comm", "/proc/self/mem"])
def test_a_file_of_the_kernel_is_not_an_output(instance: Path, path: str) -> None:
    """stat(2) calls it a regular file."""
    fd = os.open(path, os.O_RDWR)
    for options in (["-o", path, "--continue"], ["--output-fd", str(fd)]):
        done = collect("--raw", instance, *options, pass_fds=(fd,))
        assert (done.status, "it is a file of the kernel" in done.messages) == (125, True)
    os.close(fd)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_trace_and_its_stats_are_for_their_owner_alone(tmp_path: Path, instance: Path) -> None:
    out, stats = tmp_path / "trace", tmp_path / "stats"
    before = os.umask(0)
    try:
        assert replay(instance, "-o", out, "--stats", stats).status == 0
    finally:
        os.umask(before)
    assert (mode_of(out), mode_of(stats)) == (0o600, 0o600)


@pytest.mark.parametrize(("mode", "is_reported"), [(0o600, False), (0o640, True)])
def test_a_trace_that_is_continued_keeps_the_mode_it_was_given(
    tmp_path: Path, instance: Path, mode: int, is_reported: bool
) -> None:
    out = tmp_path / "trace"
    out.touch(mode)
    out.chmod(mode)
    found = replay(instance, "--continue", "-o", out)
    assert (found.status, mode_of(out)) == (0, mode)
    assert ("(mode 0640)" in found.messages) is is_reported


def test_a_link_in_the_way_is_not_followed(tmp_path: Path, instance: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    link.symlink_to(victim)
    assert replay(instance, "-o", link).status == 125
    assert not victim.exists()


def test_a_descriptor_is_written_from_where_it_is(tmp_path: Path, instance: Path) -> None:
    out = tmp_path / "trace"
    out.write_bytes(b"before\n")
    with out.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        done = collect("--raw", instance, "--output-fd", str(file.fileno()),
                       pass_fds=[file.fileno()])  # fmt: skip
    assert (done.status, done.text) == (0, b"")
    assert out.read_bytes() == b"before\n" + WHOLE


def test_a_trace_can_be_continued_and_is_cut_after_its_old_end(
    tmp_path: Path, instance: Path
) -> None:
    """As `etrace stop` does after a collector was killed; here the disk is full soon."""
    out = tmp_path / "trace"
    out.write_bytes(b"INITCWD=/\n")
    with out.open("ab") as file:
        fd = file.fileno()
        done = subprocess.run(
            [program(), "--raw", instance, "--output-fd", str(fd)],
            capture_output=True, text=True, check=False, timeout=60, pass_fds=[fd],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )  # fmt: skip
    event = len(events(1)[0].lines)
    n = (1000 - len(b"INITCWD=/\n")) // event
    assert done.returncode == 2
    assert out.read_bytes() == b"INITCWD=/\n" + lines(events(n))
    assert f"{n * event} bytes with {n} whole events are kept" in done.stderr


def test_a_descriptor_that_cannot_be_written_is_refused(instance: Path) -> None:
    with Path("/dev/null").open("rb") as file:
        done = collect("--raw", instance, "--output-fd", str(file.fileno()),
                       pass_fds=[file.fileno()])  # fmt: skip
    assert done.status == 125
    assert "not open for writing" in done.messages
    done = replay(instance, "--output-fd", "99")
    assert "--output-fd 99: not an open descriptor" in done.messages


@pytest.mark.parametrize(
    ("cwd", "line"),
    [("/home/u", b"/home/u"), ("/a\nb\n", rb"/a\012b\012"), (b"/\xff\xe9", b"/\xff\xe9")],
)
def test_the_first_line_says_the_working_directory(
    instance: Path, cwd: str | bytes, line: bytes
) -> None:
    done = replay(instance, "--cwd", os.fsdecode(cwd))
    assert done.text == b"INITCWD=" + line + b"\n" + WHOLE
    assert done.stats["lines"] == done.text.count(b"\n")
    assert done.stats["events"] == 4000


def limited(
    instance: Path, out: Path, size: int, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run with a limit on the size of files: writing fails in the middle, as on a full disk."""
    return subprocess.run(
        [program(), "--raw", instance, "-o", out, "--stats", out.with_suffix(".stats"), *options],
        capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 1000, 262_144, 300_000, 600_000])
def test_a_full_disk_keeps_whole_events_and_counts_the_rest(
    tmp_path: Path, instance: Path, size: int
) -> None:
    out = tmp_path / "trace"
    done = limited(instance, out, size)
    kept = out.read_bytes()
    n = len(kept) // len(events(1)[0].lines)
    assert kept == lines(events(n))
    assert 0 <= size - len(kept) < len(events(1)[0].lines)
    assert done.returncode == 2
    assert f"{len(kept)} bytes with {n} whole events are kept" in done.stderr
    if size > 1000:  # the stats are a file as well
        stats = json.loads(out.with_suffix(".stats").read_text())
        assert (stats["events"], stats["unwritten_events"]) == (n, 4000 - n)
        assert (stats["bytes"], stats["lines"]) == (len(kept), kept.count(b"\n"))
        assert stats["ended"] == "write-error"
        assert "large" in stats["error"]


def test_a_full_device_is_said_at_once_and_reading_goes_on(instance: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as file:
        done = collect("--raw", instance, "--output-fd", str(file.fileno()),
                       pass_fds=[file.fileno()])  # fmt: skip
    assert done.status == 2
    assert "No space left on device; 0 bytes with 0 whole events are kept" in done.messages
    assert "free some space" in done.messages
    assert (done.stats["records"], done.stats["lost"]) == (4000, 4000)


def test_nobody_reading_ends_it(instance: Path) -> None:
    with subprocess.Popen(
        [program(), "--raw", instance], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Broken pipe" in process.stderr.read()
    assert process.returncode == 2


def test_stats_say_what_was_seen(tmp_path: Path) -> None:
    made = Instance(tmp_path / "instance")
    child = 2 << 22 | 8
    thread = plain_event(child, START + 2, 0, "SysClone", {"flags": 0x10F00})
    forked = plain_event(child, START + 2, 0, "SchedFork", {"pid": child + 1})
    both = Event(child, START + 2, 0, (thread.payloads[0] + forked.payloads[0],), b"")
    plain = [
        plain_event(1 << 22 | 7, START, 0, "SchedFork", {"pid": child}),
        exec_event(child, START + 1, 0, [b"cc", b"x" * 3000], per_record=1),
        both,
        *events(5),
        plain_event(child, START + 50, 0, "Exit", {"status": 0}),
    ]
    made.add_events(0, plain)
    done = replay(made.write())
    counted = {
        "schema": 1, "backend": "kmod", "events": 10, "processes": 1, "threads": 1,
        "executions": 1, "opens": 5, "lost": 0, "ended": "stopped", "warnings": [],
    }  # fmt: skip
    assert counted.items() <= done.stats.items()
    assert done.stats["lines"] == done.text.count(b"\n")
    assert done.stats["bytes"] == done.stats["written_bytes"] == len(done.text)
    assert done.stats["duration_ns"] > 0


def test_stats_replace_a_file_and_do_not_follow_links(tmp_path: Path, instance: Path) -> None:
    victim, stats = tmp_path / "victim", tmp_path / "stats"
    victim.write_text("precious")
    stats.symlink_to(victim)
    done = replay(instance, "--stats", stats)
    assert done.status == 0
    assert victim.read_text() == "precious"
    assert json.loads(stats.read_text())["events"] == 4000


def test_status_in_a_file_is_the_last_line_only(tmp_path: Path, instance: Path) -> None:
    status = tmp_path / "status"
    status.write_bytes(b"x" * 5000)
    with status.open("r+b") as file:
        collect("--raw", instance, "--status-fd", str(file.fileno()), pass_fds=[file.fileno()])
    found = json.loads(status.read_text())
    assert found.keys() >= {"processes", "live", "executions", "opens", "bytes", "records", "lost"}
    assert (found["records"], found["opens"], found["bytes"]) == (4000, 4000, len(WHOLE))


# --- zstd ---


@pytest.fixture
def large(tmp_path: Path) -> Path:
    made = Instance(tmp_path / "large")
    made.add_events(0, events(12_000))
    return made.write()


@pytest.mark.usefixtures("compressing")
def test_zstd_gives_the_same_text_in_less_room(tmp_path: Path, large: Path) -> None:
    out = tmp_path / "trace.zst"
    done = replay(large, "--zstd", "--cwd", "/", "-o", out)
    text = b"INITCWD=/\n" + lines(events(12_000))
    assert done.status == 0
    assert decompressed(out) == text
    assert done.stats["bytes"] == len(text)
    assert done.stats["written_bytes"] == out.stat().st_size < len(text) / 8


@pytest.mark.usefixtures("compressing")
def test_a_full_disk_leaves_whole_frames(tmp_path: Path, large: Path) -> None:
    out, whole = tmp_path / "cut.zst", tmp_path / "whole.zst"
    assert replay(large, "--zstd", "-o", whole).status == 0
    done = limited(large, out, whole.stat().st_size - 10, "--zstd")
    kept = decompressed(out)
    n = len(kept) // len(events(1)[0].lines)
    assert 0 < n < 12_000
    assert kept == lines(events(n))
    assert done.returncode == 2
    assert f"{out.stat().st_size} bytes with {n} whole events are kept" in done.stderr


def test_without_zstd_the_option_says_so(
    tmp_path: Path, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETRACE_CAT", str(build(tmp_path, [], [])))
    done = replay(instance, "--zstd")
    assert done.status == 125
    assert "built without zstd: install libzstd-dev" in done.messages
