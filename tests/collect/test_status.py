# SPDX-License-Identifier: Apache-2.0
"""What a collector says while it runs, and what is left of that when it is killed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from collect.collector import Live, close, collect, now_ns, program
from collect.ring_buffer import Instance, plain_event
from failing_calls import preloading
from trying import until

HOUR_NS = 3600 * 10**9


def wait_for(status: Path, **wanted: int) -> dict[str, Any]:
    def found() -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(status.read_text() or "{}")
        return loaded

    until(lambda: wanted.items() <= found().items(), found)
    return found()


def large(folder: Path, n: int) -> Path:
    made = Instance(folder)
    made.add_events(
        0, [plain_event(1 << 22 | 7, 10**10 + at, 0, "Close", {"fd": 3}) for at in range(n)]
    )
    return made.write()


def test_records_that_are_held_back_are_reported_from_written_ones(tmp_path: Path) -> None:
    """They die with a killed collector, so the difference is what was lost."""
    status = tmp_path / "status"
    with ExitStack() as stack, status.open("wb") as file:
        live = Live(tmp_path, stack, "--status-fd", file.fileno())
        event = close(0)
        live.write(0, event)
        live.wait_for(event.lines)
        later = now_ns() + HOUR_NS  # is not written before the end
        live.write(1, *(close(1, later + at) for at in range(9)))
        wait_for(status, records=10, written_records=1)
        live.process.kill()
        live.process.wait()
        assert wait_for(status, records=10)["written_records"] == 1
        assert live.out.read_bytes() == event.lines


def test_all_records_are_written_at_the_end(tmp_path: Path) -> None:
    with ExitStack() as stack:
        live = Live(tmp_path, stack)
        live.write(1, *(close(1, now_ns() + HOUR_NS) for _ in range(9)))
        live.end()
        assert (live.stats()["records"], live.stats()["written_records"]) == (9, 9)


def test_events_that_were_not_written_are_not_counted_as_written(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = collect(
            "--raw", large(tmp_path / "i", 50), "--output-fd", str(full.fileno()),
            pass_fds=[full.fileno()],
        )  # fmt: skip
    assert (done.stats["records"], done.stats["written_records"]) == (50, 0)


def test_a_line_in_a_file_is_never_shorter_than_the_one_before(tmp_path: Path) -> None:
    """So that one write replaces it: a collector may be killed at any moment."""
    sizes = []
    for n in (1, 5000):
        status = tmp_path / f"status{n}"
        with status.open("wb") as file:
            collect("--raw", large(tmp_path / f"i{n}", n), "--status-fd", str(file.fileno()),
                    pass_fds=[file.fileno()])  # fmt: skip
        sizes.append(status.stat().st_size)
        assert status.read_bytes().count(b"\n") == 1
        assert json.loads(status.read_text())["records"] == n
    assert sizes[0] == sizes[1]


def test_a_write_error_is_in_the_status(tmp_path: Path) -> None:
    status = tmp_path / "status"
    with ExitStack() as stack:
        file = stack.enter_context(status.open("wb"))
        full = stack.enter_context(Path("/dev/full").open("wb", buffering=0))
        live = Live(tmp_path, stack, "--status-fd", file.fileno(), output_fd=full.fileno())
        live.write(0, close(0))
        found = wait_for(status, lost=1)
        assert "No space left" in found["error"]
        assert live.process.poll() is None


def test_a_long_drain_is_seen_to_go_forward(tmp_path: Path) -> None:
    """Who waits for the end takes counts that stand still for a collector that hangs."""
    instance, status = large(tmp_path / "i", 60_000), tmp_path / "status"
    with (
        status.open("wb") as file,
        subprocess.Popen(
            [program(), "--raw", instance, "--status-fd", str(file.fileno())],
            stdout=subprocess.PIPE, pass_fds=[file.fileno()],
        ) as process,
    ):  # fmt: skip
        assert process.stdout
        seen = set()
        while chunk := os.read(process.stdout.fileno(), 1 << 20):
            time.sleep(len(chunk) / (1 << 20))
            found = json.loads(status.read_text() or "{}")
            seen.add(found.get("bytes", 0))
    assert len(seen) >= 3, seen


def test_a_failing_close_is_a_loss(tmp_path: Path) -> None:
    """NFS and quotas say at the close that there was no room."""
    instance, out, stats = large(tmp_path / "i", 10), tmp_path / "out", tmp_path / "stats"
    done = subprocess.run(
        [program(), "--raw", instance, "-o", out, "--stats", stats],
        capture_output=True, text=True, check=False, env=preloading(tmp_path, CLOSE_FAILS),
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot finish" in done.stderr
    found = json.loads(stats.read_text())
    assert (found["ended"], found["lost"]) == ("write-error", 1)
    assert "quota" in found["error"]


CLOSE_FAILS = r"""
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int close(int fd)
{
	struct stat st;
	int is_trace = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size;
	int fails = is_trace && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;

	syscall(SYS_close, fd);
	errno = EDQUOT;
	return fails ? -1 : 0;
}
"""
