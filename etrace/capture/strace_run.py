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
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from etrace.capture import limits, orphans, signals
from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.files import aside_message
from etrace.capture.kmod.system.output import Output, identity_of, open_output
from etrace.capture.kmod.system.owner import Owner, acting_as, myself
from etrace.capture.ptrace import TRACER_FAILED, explain
from etrace.errors import CaptureError, EtraceError
from etrace.imports.strace.convert import Converted, Converter
from etrace.imports.strace.paths import Here
from etrace.imports.strace.sources import Clock, Log, Reading, Stamped

POLL_MS = 50
PROGRESS_S = 0.5
#: lines between two looks at the clock
STRIDE = 256
PIPE_BYTES = 1 << 20
#: the file that strace writes its log into -> its command line
Strace = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class OfOwner(Here):
    """Asks with the rights of the trace's owner, who learns the answers."""

    owner: Owner

    def entry(self, path: bytes) -> bytes:
        """See Resolver.entry."""
        with acting_as(self.owner):
            return Here.entry(self, path)

    def file(self, path: bytes) -> bytes:
        """See Resolver.file."""
        with acting_as(self.owner):
            return Here.file(self, path)

    def target(self, path: bytes) -> bytes | None:
        """See Resolver.target."""
        with acting_as(self.owner):
            return Here.target(self, path)

    def script(self, path: bytes) -> list[bytes]:
        """See Resolver.script."""
        with acting_as(self.owner):
            return Here.script(self, path)


@dataclass(frozen=True, slots=True)
class _Traced:
    """How strace ended, and what became of its log; `failure` when that could not be written."""

    code: int
    duration_ns: int
    handed_on: bool
    converted: Converted | None
    failure: EtraceError | None


def run(
    command: list[str],
    strace: Strace,
    options: Options,
    on_progress: Callable[[Progress], None] | None,
) -> Outcome:
    """Trace a command with strace. CaptureError when it could not be started."""
    refused = explain(command)  # strace itself would end with 1
    if refused:
        return Outcome(refused, 0)
    limits.check("strace")
    trace = Path(options.trace)
    output = open_output(trace.parent, options.owner or myself())
    output.check((trace.name,))
    fd = output.create()
    try:
        with os.fdopen(fd, "wb") as stream:
            identity = identity_of(stream.fileno())
            traced = _Run(strace, options, stream, on_progress).run()
            with contextlib.suppress(OSError):
                stream.flush()
            if traced.converted is None:
                return _failed(output, traced)
            return _published(output, trace.name, identity, traced, options)
    except BaseException:
        output.discard()
        raise


@dataclass(slots=True)
class _Run:
    """strace and the conversion of what it writes."""

    strace: Strace
    options: Options
    stream: BinaryIO
    on_progress: Callable[[Progress], None] | None
    reading: Reading = field(default_factory=Reading)
    child: subprocess.Popen[bytes] | None = None
    shown_s: float = field(default_factory=time.monotonic)
    converter: Converter | None = None
    pending: list[int] = field(default_factory=list)
    handed_on: bool = False

    def run(self) -> _Traced:
        """Run the command to its end."""
        with orphans.temporary_directory("etrace-strace-") as (directory, ends_with_me):
            fifo = os.path.join(directory, "log")
            os.mkfifo(fifo, 0o600)
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            argv = self.strace(fifo)
            with signals.forwarded(self._hand_on), os.fdopen(reader, "rb", PIPE_BYTES) as log:
                began = time.monotonic_ns()
                self._start(argv, ends_with_me)
                assert self.child is not None
                converted, failure = self._convert(log)
                code = self._wait()
                duration_ns = time.monotonic_ns() - began
                return _Traced(code, duration_ns, self.handed_on, converted, failure)

    def _start(self, argv: list[str], ends_with_me: Callable[[int], None]) -> None:
        def begin() -> None:
            ends_with_me(os.getpid())  # before the command can run
            limits.restore()

        environment = {name: os.environ[name] for name in os.environ if name != limits.VARIABLE}
        try:
            # close_fds=False: a build may use descriptors that the user opened (a jobserver, 3>log)
            self.child = subprocess.Popen(
                argv,
                close_fds=False,
                env=environment,
                preexec_fn=begin,  # noqa: PLW1509
            )  # there is no other thread
        except OSError as error:
            raise CaptureError(
                f"{argv[0]}: {error.strerror}", "install the package strace again"
            ) from error

    def _wait(self) -> int:
        assert self.child is not None
        return self.child.wait()

    def _hand_on(self, number: int) -> None:
        """Send a signal to the command: strace itself defers all that would end it."""
        self.handed_on = True
        self.pending.append(number)
        self._send_pending()

    def _send_pending(self) -> None:
        """Send what waits for the command's first line, which has its pid."""
        pid = self.converter.first_pid if self.converter is not None else 0
        while pid and self.pending:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self.pending.pop())

    def _convert(self, log: BinaryIO) -> tuple[Converted | None, EtraceError | None]:
        """Convert until strace closes the pipe; after a failure the rest is read all the same."""
        offset_ns = time.time_ns() - time.monotonic_ns()
        converter = self.converter = Converter(
            self.stream, os.getcwdb(), resolver=OfOwner(self.options.owner or myself()),
            reading=self.reading, is_own=True,
            says_responses=self.options.response_files, says_usage=self.options.usage,
            keeps_environments=self.options.env,
        )  # fmt: skip
        if not self._opened(log):
            return None, CaptureError("strace wrote no log", "run it by itself: strace -f true")
        lines = Log("strace", log, 0, Clock(offset_ns, self.reading.lacks)).lines(self.reading)
        try:
            converter.feed(self._shown(converter, lines))
            return converter.finish(), None
        except OSError as error:
            failure: EtraceError = CaptureError(
                f"{self.options.trace}: {error.strerror}", "free some space, or give -o"
            )
        except EtraceError as error:
            failure = error
        while log.read(PIPE_BYTES):
            pass
        return None, failure

    def _opened(self, log: BinaryIO) -> bool:
        """Wait until strace has opened the pipe; False when it ended without."""
        assert self.child is not None
        poll = select.poll()
        poll.register(log.fileno(), select.POLLIN)
        while not poll.poll(POLL_MS):
            if self.child.poll() is not None and not poll.poll(0):
                return False
        os.set_blocking(log.fileno(), True)
        return True

    def _shown(self, converter: Converter, lines: Iterator[Stamped]) -> Iterator[Stamped]:
        for number, line in enumerate(lines):
            yield line  # it is converted when the next one is asked for
            if self.pending:
                self._send_pending()
            if self.on_progress is not None and number % STRIDE == 0:
                self._show(converter)

    def _show(self, made: Converter) -> None:
        if time.monotonic() - self.shown_s < PROGRESS_S or self.on_progress is None:
            return
        self.shown_s = time.monotonic()
        counts = made.out.counts
        with contextlib.suppress(Exception):  # a failing status line does not stop the build
            self.on_progress(
                Progress(
                    made.n_processes,
                    len(made.tasks.live),
                    counts["New_proc"],
                    counts["Open"],
                    made.out.n_bytes,
                )
            )


def _failed(output: Output, traced: _Traced) -> Outcome:
    """Return the outcome of a build without a trace: its own status, or 125 when it succeeded."""
    output.discard()
    status, signal = _status(traced.code)
    assert traced.failure is not None
    remarks = (traced.failure.message, traced.failure.hint)
    return Outcome(status or TRACER_FAILED, signal, remarks=remarks)


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
        remarks.append(aside_message(name))
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
