# SPDX-License-Identifier: Apache-2.0
"""The backend that runs strace and converts its log while the build runs (docs/capture-strace.md).

strace writes into a named pipe, so only the trace comes to the disk, and no process of the
build gets a descriptor of etrace.
"""

from __future__ import annotations

from etrace.capture.ptrace import refusal, traced_already
from etrace.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from etrace.capture.backend import Outcome, Probe, Progress
    from etrace.capture.options import Options

PROGRAM = "strace"
#: --seccomp-bpf came with it
MIN_VERSION = (5, 3)
#: it says which process a number in a PID namespace is
PIDS_VERSION = (5, 9)
#: longest argument that execve(2) takes (MAX_ARG_STRLEN)
STRING_BYTES = 131072
INSTALL = "install the package strace (apt-get install strace), or leave --backend out"


def locate() -> str:
    """Return the path of strace. CaptureError when it is missing."""
    import shutil

    path = shutil.which(PROGRAM)
    if path is None:
        raise CaptureError("strace is not installed", INSTALL)
    return path


def version_of(text: str) -> tuple[int, ...]:
    """Read the version in what `strace -V` prints, empty when there is none."""
    import re

    found = re.search(r"version (\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def version(path: str) -> tuple[int, ...]:
    """Return the version of strace, empty when it does not say."""
    import subprocess

    try:
        done = subprocess.run([path, "-V"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}", INSTALL) from error
    return version_of(done.stdout + done.stderr)


def arguments(options: Options, log: str, found: tuple[int, ...]) -> list[str]:
    """Return the options of this version of strace for these capture options."""
    from etrace.spec import syscalls

    asked = {"mounts": options.mounts, "thread_names": options.thread_names}
    names = syscalls.load().of_strace("always", *(when for when, wanted in asked.items() if wanted))
    calls = ",".join(f"?{name}" for name in names)  # `?`: this machine may not have it
    words = ["-f", "--seccomp-bpf", "-q", "-ttt", "-y", "-s", str(STRING_BYTES)]
    # it cannot ask for the environments of make and ninja alone: the converter drops the others
    words += ["-v"] if options.env else ["-e", "abbrev=!execve,execveat"]
    words += ["--pidns-translation"] if found >= PIDS_VERSION else []
    # only SIGCHLD, which ends nothing: a signal that is left out has no `killed by` either
    return [*words, "-e", f"trace={calls}", "-e", "signal=!SIGCHLD", "-o", log]


class StraceBackend:
    """strace --seccomp-bpf: where only strace may trace. `auto` never takes it."""

    name = "strace"
    description = "strace --seccomp-bpf, converted; needs the program strace"

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: strace is missing or too old, or this process has a tracer."""
        try:
            path = locate()
            found = version(path)
        except CaptureError as error:
            return refusal(error.message, error.hint)
        if found < MIN_VERSION:
            shown = ".".join(map(str, found)) or "unknown"
            wanted = ".".join(map(str, MIN_VERSION))
            return refusal(
                f"{path}: version {shown}, and --seccomp-bpf came with {wanted}",
                "install a newer strace, or leave --backend out",
            )
        return traced_already()

    def is_out_of_question(self) -> bool:
        """See Backend.is_out_of_question: ptrace works wherever strace does, and sees more."""
        return True

    def probe(self) -> Probe:
        """Trace `true` and look for its New_proc."""
        import subprocess
        import tempfile
        from pathlib import Path

        from etrace.capture.backend import Probe
        from etrace.capture.options import Options

        if (obstacle := self.obstacle()) is not None:
            return obstacle
        with tempfile.TemporaryDirectory(prefix="etrace-probe-") as directory:
            log = Path(directory) / "log"
            path = locate()
            done = subprocess.run(
                [path, *arguments(Options("", ""), str(log), version(path)), "true"],
                capture_output=True,
                check=False,
            )
            if done.returncode == 0 and b"execve(" in log.read_bytes():
                return Probe(True, "traced a command")
        reason = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        return Probe(
            False,
            reason or f"strace ended with status {done.returncode}",
            "kernel.yama.ptrace_scope or a seccomp profile may forbid it: etrace doctor",
        )

    def become(self, command: list[str], options: Options) -> None:
        """See Backend.become: this process converts."""

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command`; see Backend.run."""
        from etrace.capture.strace_run import run

        def strace(log: str) -> list[str]:
            path = locate()
            return [path, *arguments(options, log, version(path)), "--", *command]

        return run(command, strace, options, on_progress)
