# SPDX-License-Identifier: Apache-2.0
"""The rootless backend: drives the C program etrace-ptrace (docs/capture-ptrace.md)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etrace
from etrace.capture import signals
from etrace.capture.backend import Options, Outcome, Probe, Progress
from etrace.errors import CaptureError

#: exit status of the tracer when it, not the traced command, failed
TRACER_FAILED = 125
PROGRAM = "etrace-ptrace"


def program() -> Path:
    """Path of the C program, installed beside this package."""
    path = Path(etrace.__file__).parent / "libexec" / PROGRAM
    if not os.access(path, os.X_OK):
        raise CaptureError(
            f"{path}: the tracer is not installed",
            "run `make build` and use .venv/bin/etrace, or install the package again",
        )
    return path


def status_field(name: str) -> str:
    """Return a field of /proc/self/status, empty when there is none."""
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return ""


def process_name(pid: str) -> str:
    """Return the name of a process, `unknown` when it is gone or hidden."""
    try:
        return Path("/proc", pid, "comm").read_text().strip()
    except OSError:
        return "unknown"


def arguments(options: Options, status_fd: int | None) -> list[str]:
    """Options of etrace-ptrace for these capture options."""
    flags = {
        "--env": options.env,
        "--mounts": options.mounts,
        "--thread-names": options.thread_names,
        "--wait-all": options.wait_all,
    }
    out = ["-o", str(options.trace), "--stats", str(options.stats)]
    out += [flag for flag, wanted in flags.items() if wanted]
    return out if status_fd is None else [*out, "--status-fd", str(status_fd)]


def parse_progress(line: bytes) -> Progress | None:
    """One line of the status descriptor; None when it is not one."""
    try:
        raw = json.loads(line)
        return Progress(
            raw["processes"], raw["live"], raw["executions"], raw["opens"], raw["bytes"]
        )
    except (ValueError, KeyError, TypeError):
        return None


def read_stats(path: Path) -> dict[str, Any]:
    """Return the stats file of a capture; empty when there is none or it is not readable as one."""
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _follow(fd: int, on_progress: Callable[[Progress], None]) -> None:
    """Read progress lines until the tracer closes its end."""
    with open(fd, "rb", buffering=0, closefd=False) as stream:
        pending = b""
        while chunk := stream.read(4096):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if (progress := parse_progress(line)) is not None:
                    on_progress(progress)


def _start(argv: list[str], status_fd: int | None) -> subprocess.Popen[bytes]:
    if status_fd is not None:
        os.set_inheritable(status_fd, True)
    try:
        # close_fds=False: a build may use descriptors that the user opened (a jobserver, 3>log)
        return subprocess.Popen(argv, close_fds=False)
    except OSError as error:
        raise CaptureError(
            f"{argv[0]}: {error.strerror}", "is the file system mounted noexec?"
        ) from error


class PtraceBackend:
    """ptrace and seccomp-BPF: works wherever the kernel lets a parent trace its children."""

    name = "ptrace"
    description = "ptrace + seccomp-BPF, no rights needed"

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: this process has a tracer already, or the program is missing."""
        try:
            program()
        except CaptureError as error:
            return Probe(False, error.message, error.hint)
        tracer = status_field("TracerPid")
        if tracer in ("0", ""):
            return None
        return Probe(
            False,
            f"this process is traced already, by process {tracer} ({process_name(tracer)})",
            "a process has one tracer only: run etrace around the outermost command, alone",
        )

    def probe(self) -> Probe:
        """Trace `true` and look for its New_proc."""
        import tempfile  # noqa: PLC0415  a capture does not need it, and starts the faster

        if (obstacle := self.obstacle()) is not None:
            return obstacle
        argv0 = str(program())
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

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command`; see Backend.run."""
        argv0 = str(program())
        children: list[subprocess.Popen[bytes]] = []

        def hand_on(number: int) -> None:
            for process in children:
                process.send_signal(number)

        with signals.forwarded(hand_on):
            if on_progress is None:
                process = _start([argv0, *arguments(options, None), "--", *command], None)
                children.append(process)
                process.wait()
            else:
                reader, writer = os.pipe()
                process = _start([argv0, *arguments(options, writer), "--", *command], writer)
                children.append(process)
                os.close(writer)
                _follow(reader, on_progress)
                process.wait()
                os.close(reader)
        code = process.returncode
        return Outcome(code if code >= 0 else 128 - code, max(-code, 0), read_stats(options.stats))
