# SPDX-License-Identifier: Apache-2.0
"""The rootless backends: they drive the C programs etrace-ptrace and etrace-preload.

docs/capture-ptrace.md and docs/capture-preload.md describe them.
"""

from __future__ import annotations

import os

import etrace
from etrace.capture.files import RESPONSES_SUFFIX, side_files
from etrace.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, NoReturn

    from etrace.capture.backend import Outcome, Probe, Progress
    from etrace.capture.options import Options

#: exit status of the tracer when it, not the traced command, failed
TRACER_FAILED = 125
PROGRAM = "etrace-ptrace"
PRELOAD_PROGRAM = "etrace-preload"
MAX_STATS_BYTES = 1 << 20
#: signals that Python ignores, although commands expect their default action: SIGPIPE, SIGXFSZ
PYTHON_IGNORES = (13, 25)


def libexec(name: str) -> str:
    """Path of a C program, beside this package."""
    return os.path.join(os.path.dirname(etrace.__file__), "libexec", name)


def program(name: str = PROGRAM) -> str:
    """Path of the C program. CaptureError when it is not installed."""
    path = libexec(name)
    if not os.access(path, os.X_OK):
        raise CaptureError(
            f"{path}: the tracer is not installed",
            "run `make build` and use .venv/bin/etrace, or install the package again",
        )
    return path


def status_field(name: str) -> str:
    """Return a field of /proc/self/status, empty when there is none."""
    with open("/proc/self/status") as stream:
        for line in stream:
            key, _, value = line.partition(":")
            if key == name:
                return value.strip()
    return ""


def process_name(pid: str) -> str:
    """Return the name of a process, `unknown` when it is gone or hidden."""
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return "unknown"


def arguments(options: Options, status_fd: int | None) -> list[str]:
    """Options of the program for these capture options."""
    flags = {
        "--env": options.env,
        "--mounts": options.mounts,
        "--thread-names": options.thread_names,
        "--no-usage": not options.usage,
        "--stdout": options.stdout,
        "--no-stderr": not options.stderr,
        "--eager": options.hash,
        "--wait-all": options.wait_all,
        "--summary": options.summary,
        "--substitute": options.substitute,
    }
    out = ["-o", str(options.trace), "--stats", str(options.stats)]
    for path in side_files(options.trace):
        out += ["--rotate", path]
    if options.response_files:
        out += ["--response-files", f"{options.trace}{RESPONSES_SUFFIX}"]
    if options.libraries is not None:  # of etrace-preload
        out += ["--libraries", options.libraries]
    if options.buffer_kib:  # of etrace-bpf
        out += ["--buffer-size", str(options.buffer_kib)]
    if options.folder is not None:
        os.set_inheritable(options.folder, True)  # to the tracer, which keeps it from the build
        out += ["--folder", str(options.folder)]
    if options.marks is not None:
        os.set_inheritable(options.marks, True)
        out += ["--marks", str(options.marks)]
    if options.owner is not None:
        out += ["--owner", f"{options.owner.uid}:{options.owner.gid}"]
    out += [flag for flag, wanted in flags.items() if wanted]
    return out if status_fd is None else [*out, "--status-fd", str(status_fd)]


def parse_progress(line: bytes) -> Progress | None:
    """One line of the status descriptor; None when it is not one."""
    import json

    from etrace.capture.backend import Progress

    try:
        raw = json.loads(line)
        return Progress(
            raw["processes"], raw["live"], raw["executions"], raw["opens"], raw["bytes"]
        )
    except (ValueError, KeyError, TypeError):
        return None


def read_stats(path: str | Path) -> dict[str, Any]:
    """Return the stats of a capture; empty when the file is missing or malformed."""
    from libetrace.core.regular_file import read_json

    try:
        raw = read_json(path, MAX_STATS_BYTES)
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _follow(fd: int, wait: Callable[[int], None], on_progress: Callable[[Progress], None]) -> None:
    """Read progress lines until the tracer closes its end."""
    with open(fd, "rb", buffering=0, closefd=False) as stream:
        pending = b""
        wait(fd)
        while chunk := stream.read(4096):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if (progress := parse_progress(line)) is not None:
                    on_progress(progress)
            wait(fd)


def _wait(process: subprocess.Popen[bytes], wait: Callable[[int], None]) -> None:
    """Wait for the end of the tracer."""
    try:
        ended = os.pidfd_open(process.pid)
    except OSError:  # before Linux 5.3, which preload does not need
        pass
    else:
        wait(ended)
        os.close(ended)
    process.wait()


def _start(argv: list[str], status_fd: int | None) -> subprocess.Popen[bytes]:
    import subprocess

    if status_fd is not None:
        os.set_inheritable(status_fd, True)
    try:
        # close_fds=False: a build may use descriptors that the user opened (a jobserver, 3>log)
        return subprocess.Popen(argv, close_fds=False)
    except OSError as error:
        raise _cannot_execute(argv[0], error) from error


def explain(command: list[str], error: int = 0) -> int:
    """Print why a command cannot be executed, and return a shell's exit status for that.

    Without the error of execve(2) find out whether it can be: 0 when nothing speaks against it.
    """
    import errno
    import subprocess
    import sys

    try:
        tracer = program()
    except CaptureError:
        if error:
            sys.stderr.write(f"etrace: cannot run {command[0]!r}: {os.strerror(error)}\n")
        return {0: 0, errno.ENOENT: 127}.get(error, 126)
    return subprocess.run([tracer, "--explain", str(error), *command], check=False).returncode


def _cannot_execute(path: str, error: OSError) -> CaptureError:
    return CaptureError(f"{path}: {error.strerror}", "is the file system mounted noexec?")


def _execute(argv: list[str]) -> NoReturn:
    """Become another program, with the signals that this process was started with."""
    signals = __import__("_signal")  # the C part of `signal`, which is slow to import
    for number in PYTHON_IGNORES:
        signals.signal(number, signals.SIG_DFL)
    try:
        os.execv(argv[0], argv)  # noqa: S606  the tracer, with the user's command
    except OSError as error:
        raise _cannot_execute(argv[0], error) from error


def refusal(reason: str, hint: str, *, expected: bool = False) -> Probe:
    """Return the probe of a backend that does not work here."""
    from etrace.capture.backend import Probe

    return Probe(False, reason, hint, expected)


def traced_already() -> Probe | None:
    """Return the obstacle that this process has a tracer; None when it has none."""
    try:
        tracer = status_field("TracerPid")
    except OSError:  # no /proc: the program says so
        return None
    if tracer in ("0", ""):
        return None
    return refusal(
        f"this process is already traced by process {tracer} ({process_name(tracer)})",
        "a process has one tracer only: run etrace around the outermost command only",
    )


class PtraceBackend:
    """ptrace and seccomp-BPF: works wherever the kernel lets a parent trace its children."""

    name = "ptrace"
    description = "ptrace + seccomp-BPF; needs no rights"
    program = PROGRAM

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: this process has a tracer already, or the program is missing."""
        try:
            program()
        except CaptureError as error:
            return refusal(error.message, error.hint)
        return traced_already()

    def is_out_of_question(self) -> bool:
        """See Backend.is_out_of_question: never."""
        return False

    def probe(self) -> Probe:
        """Trace `true` and look for its New_proc."""
        import subprocess
        import tempfile
        from pathlib import Path

        from etrace.capture.backend import Probe
        from etrace.capture.options import Options

        if (obstacle := self.obstacle()) is not None:
            return obstacle
        argv0 = program(self.program)
        with tempfile.TemporaryDirectory(prefix="etrace-probe-") as directory:
            trace = Path(directory) / "trace"
            options = Options(trace, Path(directory) / "stats")
            done = subprocess.run(
                [argv0, *arguments(options, None), "--", "true"],
                capture_output=True,
                check=False,
            )
            if done.returncode == 0 and b"!New_proc|" in trace.read_bytes():
                return Probe(True, "traced a command")
        reason, _, hint = done.stderr.decode(errors="replace").strip().partition("\n")
        return Probe(
            False, reason or f"the tracer ended with status {done.returncode}", hint.strip()
        )

    def become(self, command: list[str], options: Options) -> None:
        """See Backend.become: the tracer forwards signals and ends like the command."""
        argv0 = program(self.program)
        _execute([argv0, *arguments(options, None), "--", *command])

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command`; see Backend.run."""
        from etrace.capture import signals
        from etrace.capture.backend import Outcome

        argv0 = program(self.program)
        children: list[subprocess.Popen[bytes]] = []
        early: list[int] = []  # signals that came before the tracer was known here

        def hand_on(number: int) -> None:
            if not children:
                early.append(number)
            for process in children:
                process.send_signal(number)

        def know(process: subprocess.Popen[bytes]) -> None:
            children.append(process)
            if options.on_start is not None:
                options.on_start(process.pid)
            for number in early:
                process.send_signal(number)

        with signals.forwarded(hand_on), signals.waking() as wait:
            if on_progress is None:
                process = _start([argv0, *arguments(options, None), "--", *command], None)
                know(process)
                _wait(process, wait)
            else:
                reader, writer = os.pipe()
                process = _start([argv0, *arguments(options, writer), "--", *command], writer)
                know(process)
                os.close(writer)
                _follow(reader, wait, on_progress)
                process.wait()
                os.close(reader)
        code = process.returncode
        status, signal = (code, 0) if code >= 0 else (128 - code, -code)
        stats = read_stats(options.stats)
        return Outcome(status, signal, stats, is_reported=options.summary)


class PreloadBackend(PtraceBackend):
    """A library in every program (LD_PRELOAD), for where ptrace is refused."""

    name = "preload"
    description = "a library in every program; misses static programs"
    program = PRELOAD_PROGRAM

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: the program is missing."""
        try:
            program(PRELOAD_PROGRAM)
        except CaptureError as error:
            return refusal(error.message, error.hint)
        return None
