# SPDX-License-Identifier: Apache-2.0
"""Starts and ends etrace_cat, the C program that reads the records from the kernel's buffers.

It gets descriptors, not names: whatever it writes was opened with the right rights by output.py.
It holds the netlink socket that owns the session, so the session ends when it dies.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import etrace
from etrace.capture.backend import Progress
from etrace.capture.kmod.system.module import CLEAN_ENVIRONMENT
from etrace.capture.kmod.system.process import Process, identify
from etrace.errors import CaptureError
from etrace.figures import count

PROGRAM = "etrace_cat"
READY_S = 60.0
WAIT_THEN_EXECUTE = 'read _ && exec "$0" "$@" </dev/null'
#: a collector that made no progress for so long is killed
STALLED_S = 30.0
TICK_S = 0.5
TELL_AFTER_S = 5.0
TAIL_BYTES = 4096


def program() -> Path:
    """Return the path of the C program, installed beside this package."""
    path = Path(etrace.__file__).parent / "libexec" / PROGRAM
    if not os.access(path, os.X_OK):
        raise CaptureError(
            f"{path}: the collector is not installed",
            "run `make build` and use .venv/bin/etrace, or install the package again",
        )
    return path


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The files that the collector writes (`log` is its stderr) and keeps open (`keep`)."""

    trace: int
    stats: int
    progress: int
    log: int
    keep: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records come from, and the working directory that the trace names if any.

    `resumes`: the trace is one that another collector has begun; without an instance it is only cut
    after what is whole.
    """

    tracefs: Path
    instance: str | None
    cwd: str
    zstd: bool = False
    resumes: bool = False


def arguments(fds: Descriptors, ready: int, source: Source) -> list[str]:
    """Return the options of etrace_cat."""
    out = ["--output-fd", str(fds.trace), "--stats-fd", str(fds.stats)]
    out += ["--status-fd", str(fds.progress), "--ready-fd", str(ready), "--keep-fd", str(fds.keep)]
    out += ["--cwd", source.cwd] if source.cwd else []
    out += ["--zstd"] if source.zstd else []
    out += ["--continue"] if source.resumes else []
    if source.instance is None:
        return [*out, os.devnull]
    return [*out, "--tracefs", str(source.tracefs), "--instance", source.instance]


def last_words(log: Path) -> str:
    """Return the last message of the collector."""
    try:
        lines = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix(f"{PROGRAM}: ") if lines else ""


class Held:
    """A collector that waits for release(), so that its number can be noted first.

    When its starter dies meanwhile, it ends: the gate is closed, and its shell reads nothing.
    """

    def __init__(self, path: Path, fds: Descriptors, source: Source) -> None:
        """Start it; CaptureError when that is not possible."""
        self._ready, ready = os.pipe()
        gate, self._gate = os.pipe()
        try:
            argv = [str(path), *arguments(fds, ready, source)]
            self._child = _spawn(argv, gate, (fds.trace, fds.stats, fds.progress, fds.keep, ready),
                                 fds.log)  # fmt: skip
        except BaseException:
            self.close()
            raise
        finally:
            os.close(ready)
            os.close(gate)
        process = identify(self._child.pid)
        assert process is not None  # a child that was not waited for
        self.process: Process = process

    def release(self, log: Path, check: Callable[[], None]) -> None:
        """Let it start; return when it has opened every per-CPU buffer.

        `check` raises when waiting is no longer wanted.
        """
        os.write(self._gate, b"\n")
        if not _is_ready(self._ready, check):
            raise CaptureError(
                f"the collector could not start: {last_words(log) or 'it was not ready in time'}",
                "see `etrace doctor`",
            )

    def close(self) -> None:
        """Stop watching it: it continues by itself."""
        os.close(self._ready)
        os.close(self._gate)
        if hasattr(self, "_child"):
            self._child.returncode = 0  # Popen must neither warn nor wait: it may outlive us


def _spawn(argv: list[str], gate: int, kept: tuple[int, ...], log: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", WAIT_THEN_EXECUTE, *argv],
            stdin=gate,
            stdout=log,
            stderr=log,
            cwd="/",
            env=CLEAN_ENVIRONMENT,
            start_new_session=True,  # the keys of the terminal are not for it
            pass_fds=kept,
        )
    except OSError as error:
        raise CaptureError(f"/bin/sh: {error.strerror}", "end other processes") from error


def _is_ready(reader: int, check: Callable[[], None]) -> bool:
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        if _ended(reader, TICK_S):  # readable, or closed by a collector that failed
            return os.read(reader, 1) != b""
        check()
    return False


def read_counts(path: Path) -> dict[str, Any]:
    """Return the last line of the collector's counts or its stats; empty when there is none."""
    try:
        lines = path.read_bytes().split(b"\n")
        raw: Any = next((json.loads(line) for line in reversed(lines) if line.strip(b" \0")), {})
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def progress(path: Path, live: int) -> Progress | None:
    """Return the collector's counts for the status line; None while there are none."""
    raw = read_counts(path)
    try:
        return Progress(raw["processes"], live, raw["executions"], raw["opens"], raw["bytes"])
    except KeyError:
        return None


def stop(
    process: Process,
    counts: Path,
    say: Callable[[str], None],
    check: Callable[[], None],
    *,
    again: bool = False,
) -> bool:
    """Let the collector read the rest and end; return whether it ended by itself.

    A collector that makes no progress is killed. `say` gets messages
    for people meanwhile, `check` raises when waiting is no longer wanted. `again`: it was asked to
    end before; a second signal would kill it.
    """
    fd = process.open()
    if fd is None:
        return True
    try:
        if not again:
            signal.pidfd_send_signal(fd, signal.SIGTERM)
        if _wait(fd, counts, say, check):
            return True
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        _ended(fd, STALLED_S)
    except ProcessLookupError:
        return True
    finally:
        os.close(fd)
        _reap(process.pid)
    return False


def _wait(fd: int, counts: Path, say: Callable[[str], None], check: Callable[[], None]) -> bool:
    began = moved = time.monotonic()
    seen, said = read_counts(counts), False
    while not _ended(fd, TICK_S):
        check()
        now = time.monotonic()
        if (latest := read_counts(counts)) != seen:
            seen, moved = latest, now
        if not said and now - began > TELL_AFTER_S:
            say(f"still writing the trace: {count(seen.get('bytes', 0), 'byte')} so far")
            said = True
        if now - moved > STALLED_S:
            return False
    return True


def _ended(fd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _reap(pid: int) -> None:
    """Take the status of a collector that is a child of this process (`etrace run`)."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
