# SPDX-License-Identifier: Apache-2.0
"""The options of a capture; a plain class, because every `etrace run` imports it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from etrace.capture.kmod.system.owner import Owner


class Options:
    """What to record beyond the default, and where.

    `trace` is the event file, `stats` the JSON with the counts of the capture. `folder` is the
    descriptor of their directory, if no name is to lead there again; `marks` that of the directory
    of marks (etrace/nfsdb/marks.py). `owner` is the owner of the
    files, if it is not this process's user. With `summary` the backend may print a summary
    at the end. `response_files`: save the contents of compilers' response files, if the backend
    can. `libraries` is the directory of the preload library, if not the installed one.
    `usage`, `stderr`, `stdout`: print what processes used and wrote there, if the backend can.
    `on_start` is called with the pid of the program that captures, when it has begun.
    `substitute`: where ptrace is refused, the preload backend may take its place.
    `hash`: files are hashed meanwhile, so lines are wanted soon.
    `buffer_kib`: size of the kernel's buffer in KiB, 0 for the default of a backend that has one.
    """

    __slots__ = (
        "buffer_kib", "env", "folder", "hash", "libraries", "marks", "mounts", "on_start", "owner",
        "response_files", "stats", "stderr", "stdout", "substitute", "summary", "thread_names",
        "trace", "usage", "wait_all",
    )  # fmt: skip

    def __init__(
        self,
        trace: str | Path,
        stats: str | Path,
        env: bool = False,
        mounts: bool = False,
        thread_names: bool = False,
        wait_all: bool = False,
        *,
        summary: bool = False,
        owner: Owner | None = None,
        response_files: bool = True,
        libraries: str | None = None,
        substitute: bool = False,
        folder: int | None = None,
        marks: int | None = None,
        usage: bool = True,
        stderr: bool = True,
        stdout: bool = False,
        on_start: Callable[[int], None] | None = None,
        buffer_kib: int = 0,
        hash: bool = False,  # noqa: A002  called like its option
    ) -> None:
        self.trace = trace
        self.stats = stats
        self.env = env
        self.mounts = mounts
        self.thread_names = thread_names
        self.wait_all = wait_all
        self.summary = summary
        self.owner = owner
        self.response_files = response_files
        self.libraries = libraries
        self.marks = marks
        self.substitute = substitute
        self.folder = folder
        self.usage = usage
        self.stderr = stderr
        self.stdout = stdout
        self.on_start = on_start
        self.buffer_kib = buffer_kib
        self.hash = hash
