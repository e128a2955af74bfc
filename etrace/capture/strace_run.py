# SPDX-License-Identifier: Apache-2.0
"""One capture with strace: the pipe, the conversion, the end of the command, the files."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from etrace.capture import orphans, signals, strace
from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.kmod.command import NOT_EXECUTABLE, NOT_FOUND
from etrace.capture.kmod.system.output import Output, identity_of, open_output
from etrace.capture.kmod.system.owner import myself
from etrace.capture.ptrace import TRACER_FAILED
from etrace.capture.session import told_aside
from etrace.errors import CaptureError, EtraceError
from etrace.imports.strace.clock import Clock
from etrace.imports.strace.convert import Converted, Converter
from etrace.imports.strace.paths import Here
from etrace.imports.strace.sources import Log, Reading, Stamped

POLL_MS = 50
PROGRESS_S = 0.5
#: lines between two looks at the clock
STRIDE = 256
PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Traced:
    """How strace ended, and what became of its log; `failure` when that could not be written."""

    code: int
    duration_ns: int
    handed_on: bool
    converted: Converted | None
    failure: EtraceError | None


def run(
    command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
) -> Outcome:
    """Trace a command with strace. CaptureError when it could not be started."""
    refused = _refusal(command[0])
    if refused is not None:
        return refused
    trace = Path(options.trace)
    output = open_output(trace.parent, options.owner or myself())
    output.check((trace.name,))
    fd = output.create()
    try:
        with os.fdopen(fd, "wb") as stream:
            identity = identity_of(stream.fileno())
            traced = _Run(command, options, stream, on_progress).run()
            with contextlib.suppress(OSError):
                stream.flush()
            if traced.converted is None:
                return _failed(output, traced)
            return _published(output, trace.name, identity, traced, options)
    except BaseException:
        output.discard()
        raise


class _Run:
    """strace and the conversion of what it writes."""

    def __init__(
        self,
        command: list[str],
        options: Options,
        stream: BinaryIO,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._command, self._options, self._stream = command, options, stream
        self._on_progress = on_progress
        self._reading = Reading()
        self._child: subprocess.Popen[bytes] | None = None
        self._shown_s = time.monotonic()
        self._converter: Converter | None = None
        self._pending: list[int] = []
        self._handed_on = False

    def run(self) -> _Traced:
        """Run the command to its end."""
        path = strace.locate()
        with orphans.temporary_directory("etrace-strace-") as (directory, ends_with_me):
            fifo = os.path.join(directory, "log")
            os.mkfifo(fifo, 0o600)
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            words = strace.arguments(self._options, fifo, strace.version(path))
            argv = [path, *words, "--", *self._command]
            with signals.forwarded(self._hand_on), os.fdopen(reader, "rb", PIPE_BYTES) as log:
                began = time.monotonic_ns()
                self._start(argv)
                assert self._child is not None
                ends_with_me(self._child.pid)
                converted, failure = self._convert(log)
                code = self._wait()
                duration_ns = time.monotonic_ns() - began
                return _Traced(code, duration_ns, self._handed_on, converted, failure)

    def _start(self, argv: list[str]) -> None:
        try:
            # close_fds=False: a build may use descriptors that the user opened (a jobserver, 3>log)
            self._child = subprocess.Popen(argv, close_fds=False)
        except OSError as error:
            raise CaptureError(f"{argv[0]}: {error.strerror}", strace.INSTALL) from error

    def _wait(self) -> int:
        assert self._child is not None
        return self._child.wait()

    def _hand_on(self, number: int) -> None:
        """Send a signal to the command: strace itself defers all that would end it."""
        self._handed_on = True
        self._pending.append(number)
        self._send_pending()

    def _send_pending(self) -> None:
        """Send what waits for the command's first line, which tells its pid."""
        pid = self._converter.first_pid if self._converter is not None else 0
        while pid and self._pending:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self._pending.pop())

    def _convert(self, log: BinaryIO) -> tuple[Converted | None, EtraceError | None]:
        """Convert until strace closes the pipe; after a failure the rest is read all the same."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        converter = self._converter = Converter(
            self._stream, os.getcwdb(), resolver=Here(), reading=self._reading, is_own=True,
            tells_responses=self._options.response_files, tells_usage=self._options.usage,
        )  # fmt: skip
        if not self._opened(log):
            return None, CaptureError("strace wrote no log", "run it by itself: strace -f true")
        lines = Log("strace", log, 0, Clock(offset_ns, self._reading.lacks)).lines(self._reading)
        try:
            converter.feed(self._shown(converter, lines))
            return converter.finish(), None
        except OSError as error:
            failure: EtraceError = CaptureError(
                f"{self._options.trace}: {error.strerror}", "free some space, or give -o"
            )
        except EtraceError as error:
            failure = error
        while log.read(PIPE_BYTES):
            pass
        return None, failure

    def _opened(self, log: BinaryIO) -> bool:
        """Wait until strace has opened the pipe; False when it ended without."""
        assert self._child is not None
        poll = select.poll()
        poll.register(log.fileno(), select.POLLIN)
        while not poll.poll(POLL_MS):
            if self._child.poll() is not None and not poll.poll(0):
                return False
        os.set_blocking(log.fileno(), True)
        return True

    def _shown(self, converter: Converter, lines: Iterator[Stamped]) -> Iterator[Stamped]:
        for number, line in enumerate(lines):
            yield line  # it is converted when the next one is asked for
            if self._pending:
                self._send_pending()
            if self._on_progress is not None and number % STRIDE == 0:
                self._show(converter)

    def _show(self, made: Converter) -> None:
        if time.monotonic() - self._shown_s < PROGRESS_S or self._on_progress is None:
            return
        self._shown_s = time.monotonic()
        counts = made.out.counts
        with contextlib.suppress(Exception):  # a failing status line does not stop the build
            self._on_progress(
                Progress(
                    made.n_processes,
                    len(made.tasks.live),
                    counts["New_proc"],
                    counts["Open"],
                    made.out.n_bytes,
                )
            )


def _refusal(name: str) -> Outcome | None:
    """Return the outcome for a command that cannot be executed: strace itself would end with 1."""
    import shutil

    path = name if "/" in name else shutil.which(name)
    if path is None or not os.path.exists(path):
        what = "no such command in PATH" if "/" not in name else "No such file or directory"
        return Outcome(NOT_FOUND, 0, remarks=(f"cannot run '{name}': {what}",))
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        return Outcome(NOT_EXECUTABLE, 0, remarks=(f"cannot run '{name}': Permission denied",))
    return None


def _failed(output: Output, traced: _Traced) -> Outcome:
    """Return the outcome of a build without a trace: its own status, or 125 when it succeeded."""
    output.discard()
    status, signal = _status(traced.code)
    assert traced.failure is not None
    told = (traced.failure.message, traced.failure.hint)
    return Outcome(status or TRACER_FAILED, signal, remarks=told)


def _status(code: int) -> tuple[int, int]:
    return (code, 0) if code >= 0 else (128 - code, -code)


def _published(
    output: Output, name: str, identity: tuple[int, int], traced: _Traced, options: Options
) -> Outcome:
    status, signal = _status(traced.code)
    aside = output.publish(name, identity)
    assert traced.converted is not None
    stats = _stats(traced, status, signal)
    output.write_stats(json.dumps(stats).encode() + b"\n")
    remarks = list(traced.converted.remarks)
    if aside and options.summary:
        remarks.append(told_aside(name))
    return Outcome(status, signal, stats, tuple(remarks))


def _stats(traced: _Traced, status: int, signal: int) -> dict[str, object]:
    converted = traced.converted
    assert converted is not None
    counts = converted.counts
    ended = "signal" if signal else "exit"
    if signal in signals.ENDING or (traced.handed_on and status):
        ended = "interrupted"
    return {
        "backend": "strace",
        "events": sum(counts.values()),
        "bytes": converted.n_bytes,
        "processes": converted.n_processes,
        "executions": counts.get("New_proc", 0),
        "opens": counts.get("Open", 0),
        "duration_ns": traced.duration_ns,
        "ended": ended,
        "exit_status": 0 if signal else status,
        "signal": signal,
        "warnings": list(converted.remarks),
    }
