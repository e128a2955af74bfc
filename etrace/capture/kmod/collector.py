# SPDX-License-Identifier: Apache-2.0
"""Starts and ends etrace_cat, the C program that takes the records out of the kernel's buffers.

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
from etrace.capture.kmod.module import CLEAN_ENVIRONMENT
from etrace.capture.kmod.process import Process, identify
from etrace.errors import CaptureError

PROGRAM = "etrace_cat"
READY_S = 60.0
#: a collector that has read nothing more for so long is not waited for any longer
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
    """What the collector writes to (`log` is its stderr) and what it keeps open (`keep`)."""

    trace: int
    stats: int
    progress: int
    log: int
    keep: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records come from, and the working directory that the trace names if any."""

    tracefs: Path
    instance: str
    cwd: str
    zstd: bool = False


def arguments(fds: Descriptors, ready: int, source: Source) -> list[str]:
    """Return the options of etrace_cat."""
    out = ["--output-fd", str(fds.trace), "--stats-fd", str(fds.stats)]
    out += ["--status-fd", str(fds.progress), "--ready-fd", str(ready), "--keep-fd", str(fds.keep)]
    out += ["--tracefs", str(source.tracefs), "--instance", source.instance]
    out += ["--cwd", source.cwd] if source.cwd else []
    return [*out, "--zstd"] if source.zstd else out


def last_words(log: Path) -> str:
    """Return the last line the collector said."""
    try:
        lines = log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix(f"{PROGRAM}: ") if lines else ""


def start(
    path: Path, fds: Descriptors, source: Source, log: Path, check: Callable[[], None]
) -> Process:
    """Start the collector; return when it has every per-CPU buffer open.

    `check` raises when waiting is no longer wanted.
    """
    reader, writer = os.pipe()
    try:
        child = _spawn([str(path), *arguments(fds, writer, source)], fds, writer)
        os.close(writer)
        writer = -1
        try:
            if _is_ready(reader, check) and (process := identify(child.pid)) is not None:
                child.returncode = 0  # Popen must neither warn nor wait: it outlives this process
                return process
        finally:
            if child.returncode is None:
                child.kill()
                child.wait()
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    raise CaptureError(
        f"the collector could not start: {last_words(log) or 'it was not ready in time'}",
        "see `etrace doctor`",
    )


def _spawn(argv: list[str], fds: Descriptors, ready: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=fds.log,
            stderr=fds.log,
            cwd="/",
            env=CLEAN_ENVIRONMENT,
            start_new_session=True,  # the keys of the terminal are not for it
            pass_fds=(fds.trace, fds.stats, fds.progress, fds.keep, ready),
        )
    except OSError as error:
        raise CaptureError(f"{argv[0]}: {error.strerror}", "is it mounted noexec?") from error


def _is_ready(reader: int, check: Callable[[], None]) -> bool:
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        if _ended(reader, TICK_S):  # readable, or closed by a collector that gave up
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
    process: Process, counts: Path, tell: Callable[[str], None], check: Callable[[], None]
) -> bool:
    """Let the collector read what is left and end; whether it did so by itself.

    As long as it goes forward it is waited for; when it does not it is killed. `tell` gets messages
    for people meanwhile, `check` raises when waiting is no longer wanted.
    """
    fd = process.open()
    if fd is None:
        return True
    try:
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        if _wait(fd, counts, tell, check):
            return True
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        _ended(fd, STALLED_S)
    except ProcessLookupError:
        return True
    finally:
        os.close(fd)
        _reap(process.pid)
    return False


def _wait(fd: int, counts: Path, tell: Callable[[str], None], check: Callable[[], None]) -> bool:
    began = moved = time.monotonic()
    seen, told = read_counts(counts), False
    while not _ended(fd, TICK_S):
        check()
        now = time.monotonic()
        if (latest := read_counts(counts)) != seen:
            seen, moved = latest, now
        if not told and now - began > TELL_AFTER_S:
            tell(f"still writing what was captured: {seen.get('bytes', 0):,} bytes so far")
            told = True
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
