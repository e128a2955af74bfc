# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM end a collector whatever it is busy with: the second one at once."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from collect.collector import Live, close, now_ns, program
from collect.ring_buffer import Instance, plain_event
from trying import LIMIT_S

BOTH = [signal.SIGINT, signal.SIGTERM]
MANY = 50_000  # events: some megabytes of text, more than pipes and buffers hold
APART_S = 0.2  # two requests; what comes faster is one, sent twice


@contextmanager
def running(
    *options: str | Path, stdin: int | None = None, stdout: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [program(), *options], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    made = Instance(tmp_path / "saved")
    made.add_events(
        0,
        [
            plain_event(1 << 22 | 7, 10**10 + at * 10**6, 0, "Close", {"fd": 3})
            for at in range(MANY)
        ],
    )
    return made.write()


def in_state(process: subprocess.Popen[bytes], state: str, *, for_s: float = 0.3) -> None:
    """Wait until the process is in one state (S: it sleeps) for a while."""
    since = time.monotonic()
    while time.monotonic() - since < for_s:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        if stat.rpartition(")")[2].split()[0] != state:
            since = time.monotonic()
        time.sleep(0.01)


def words_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stderr
    return os.read(process.stderr.fileno(), 4096)


@pytest.mark.parametrize("number", BOTH)
def test_a_stalled_reader_of_the_output_does_not_keep_it(saved: Path, number: int) -> None:
    with running("--raw", saved, stdout=subprocess.PIPE) as process:
        in_state(process, "S")
        process.send_signal(number)
        assert b"another signal ends this at once" in words_of(process)
        time.sleep(APART_S)
        process.send_signal(number)
        assert process.wait(LIMIT_S) == -number


def test_the_other_signal_is_a_second_request_as_well(saved: Path) -> None:
    with running("--raw", saved, stdout=subprocess.PIPE) as process:
        in_state(process, "S")
        process.send_signal(signal.SIGINT)
        time.sleep(APART_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == -signal.SIGTERM


def test_a_live_instance_that_writes_into_a_stalled_pipe_is_drained(tmp_path: Path) -> None:
    """The first request is not forgotten while the reader sleeps, and costs nothing."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    with ExitStack() as stack, os.fdopen(read_end, "rb") as reader:
        live = Live(tmp_path, stack, output_fd=write_end)
        os.close(write_end)
        events = [close(0, now_ns() - 10**9 + at) for at in range(240)]
        for at in range(0, len(events), 20):
            live.write(0, *events[at : at + 20])
        in_state(live.process, "S", for_s=0.5)
        live.process.send_signal(signal.SIGTERM)
        time.sleep(APART_S)
        assert reader.read() == b"".join(event.lines for event in events)
        assert live.process.wait(LIMIT_S) == 0


def test_one_request_that_arrives_twice_is_one(tmp_path: Path) -> None:
    """As from timeout(1), which signals its child and then the group."""
    with ExitStack() as stack:
        live = Live(tmp_path, stack)
        events = [close(0, now_ns() + 10**12 + at) for at in range(20)]
        live.write(0, *events)
        live.process.send_signal(signal.SIGTERM)
        live.process.send_signal(signal.SIGINT)
        assert live.process.wait(LIMIT_S) == 0
        assert live.out.read_bytes() == b"".join(event.lines for event in events)


def test_a_blocked_signal_is_opened(tmp_path: Path) -> None:
    """`etrace start` blocks them while it works, and a child inherits that."""
    with ExitStack() as stack:
        live = Live(tmp_path, stack, limit=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, BOTH))
        assert live.end() == b""


@pytest.mark.parametrize("number", BOTH)
def test_a_file_without_an_end_is_left_at_the_first_request(tmp_path: Path, number: int) -> None:
    stats = tmp_path / "stats"
    with running("--stats", stats, "/dev/zero", stdout=subprocess.DEVNULL) as process:
        in_state(process, "R")
        process.send_signal(number)
        assert process.wait(LIMIT_S) == 2
        assert b"interrupted" in words_of(process)
    assert json.loads(stats.read_text())["ended"] == "interrupted"


def test_a_line_without_an_end_takes_little_memory() -> None:
    with running("/dev/zero", stdout=subprocess.DEVNULL) as process:
        in_state(process, "R", for_s=1)
        before = resident_kib(process)
        in_state(process, "R", for_s=1)
        assert resident_kib(process) - before < 4096


def resident_kib(process: subprocess.Popen[bytes]) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.parametrize("of", ["--raw", "FILE"])
def test_what_is_finite_is_left_between_events(tmp_path: Path, saved: Path, of: str) -> None:
    """The output ends after a whole line, and the status says that it is not all."""
    whole = subprocess.run([program(), "--raw", saved], capture_output=True, check=True).stdout
    (tmp_path / "text").write_bytes(whole)
    source = ["--raw", saved] if of == "--raw" else [tmp_path / "text"]
    with running(*source, stdout=subprocess.PIPE) as process:
        in_state(process, "S")
        process.send_signal(signal.SIGTERM)
        assert process.stdout
        text = process.stdout.read()
        assert process.wait(LIMIT_S) == 2
    assert whole.startswith(text)
    assert text.endswith(b"\n")
    assert len(text) < len(whole)


def test_a_writer_who_does_not_stop_does_not_keep_it(tmp_path: Path) -> None:
    """A pipe holds so much before the request: more was written after it."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with (
        running(fifo, stdout=subprocess.DEVNULL) as process,
        subprocess.Popen(["/bin/sh", "-c", f"exec yes > '{fifo}'"]) as writer,
    ):
        in_state(process, "R", for_s=0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0
        writer.kill()
