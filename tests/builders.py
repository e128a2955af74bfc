# SPDX-License-Identifier: Apache-2.0
"""Traces written as the story of a build.

    t = TraceBuilder(cwd="/src")
    t.fork(MAKE, CC)
    t.exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    t.open(CC, "/src/a.c", fd=3)
    t.exit(CC)
    trace = t.trace()

Lines come from tests/event_lines.py, never from the C formatter. Each event takes the next time
stamp (`step_ns` later) unless `at()` sets the clock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import event_lines

Text = str | bytes

O_CREAT, O_WRONLY, O_RDWR, O_TRUNC, O_CLOEXEC = 0o100, 1, 2, 0o1000, 0o2000000
O_EXCL, O_PATH, O_APPEND = 0o200, 0o10000000, 0o2000
O_TMPFILE = 0o20000000  # the bit of its own, beside O_DIRECTORY
CLONE_FILES = 0x400
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


@dataclass(frozen=True, slots=True)
class Piece:
    """The lines of one event, which stay together among the lines of their upid."""

    upid: int
    time_ns: int
    lines: bytes


class TraceBuilder:
    """Collects events and gives them out as the bytes of a `.nfsdb`."""

    def __init__(
        self, cwd: Text = "/", *, start_ns: int = 5_000_000_000, step_ns: int = 1000
    ) -> None:
        self.cwd = os.fsencode(cwd)
        self.pieces: list[Piece] = []
        self.clock_ns = start_ns
        self.step_ns = step_ns
        self.cpu = 0

    def at(self, time_ns: int) -> Self:
        """Give the next event this time stamp."""
        self.clock_ns = time_ns
        return self

    def on(self, cpu: int) -> Self:
        """Let the following events run on this CPU."""
        self.cpu = cpu
        return self

    def trace(self, *, prefix: bytes = b"") -> bytes:
        """Return the whole trace; `prefix` (`0: `) goes before each line but the first."""
        lines = b"".join(piece.lines for piece in self.pieces)
        shown = [prefix + line for line in lines.splitlines(keepends=True)] if prefix else [lines]
        return b"INITCWD=" + self.cwd + b"\n" + b"".join(shown)

    def _add(self, upid: int, lines: bytes) -> Self:
        self.pieces.append(Piece(upid, self.clock_ns, lines))
        self.clock_ns += self.step_ns
        return self

    def head(self, upid: int) -> bytes:
        """Return the prefix that the next line of `upid` carries."""
        return event_lines.prefix(upid, self.cpu, self.clock_ns)

    def event(self, upid: int, tag: str, **values: int | Text | None) -> Self:
        """Add any event: numbers by argument name, strings by their tag."""
        raw = {k: os.fsencode(v) if isinstance(v, str) else v for k, v in values.items()}
        return self._add(upid, event_lines.event_lines(self.head(upid), tag, raw))

    def lines(self, upid: int, *data: bytes) -> Self:
        """Add lines of one stamp unchanged, well formed or not."""
        head = self.head(upid)
        return self._add(upid, b"".join(head + each + b"\n" for each in data))

    def raw(self, lines: bytes) -> Self:
        """Add bytes without a prefix: comments, noise."""
        return self._add(0, lines)

    def fork(self, parent: int, child: int, flags: int | None = None) -> Self:
        """`parent` makes `child`; with `flags` by clone, else by fork or vfork."""
        if flags is not None:
            self.event(parent, "SysClone", flags=flags)
        return self.event(parent, "SchedFork", pid=child)

    def thread(self, parent: int, child: int) -> Self:
        """`parent` starts `child` as a thread: both share one table of descriptors."""
        return self.fork(parent, child, 0x10000 | 0x800 | CLONE_FILES | 0x200 | 0x100)

    def clone_failed(self, upid: int, flags: int = 17) -> Self:
        """A clone that fails."""
        return self.event(upid, "SysClone", flags=flags).event(upid, "SysCloneFailed")

    def exec(
        self,
        upid: int,
        program: Text,
        argv: Sequence[Text] | None = None,
        *,
        cwd: Text | None = None,
        interpreter: Text | None = None,
    ) -> Self:
        """`upid` executes `program`, with its path alone as argv by default."""
        path = os.fsencode(program)
        values = {
            "PI": path if interpreter is None else os.fsencode(interpreter),
            "PP": path,
            "CW": self.cwd if cwd is None else os.fsencode(cwd),
        }
        arguments = [path] if argv is None else [os.fsencode(argument) for argument in argv]
        return self._add(upid, event_lines.exec_lines(self.head(upid), values, arguments))

    def exit(self, upid: int, status: int = 0) -> Self:
        """`upid` ends."""
        return self.event(upid, "Exit", status=status)

    def open(
        self,
        upid: int,
        path: Text,
        *,
        original: Text | None = None,
        flags: int = 0,
        mode: int = 0,
        fd: int = 3,
    ) -> Self:
        """`upid` opens `path`, having asked for `original`."""
        return self.event(
            upid, "Open",
            FN=path, FO=path if original is None else original, flags=flags, mode=mode, fd=fd,
        )  # fmt: skip

    def close(self, upid: int, fd: int = 3) -> Self:
        """`upid` closes a descriptor."""
        return self.event(upid, "Close", fd=fd)

    def use(
        self, upid: int, path: Text, *, original: Text | None = None, flags: int = 0, fd: int = 3
    ) -> Self:
        """Open and close."""
        return self.open(upid, path, original=original, flags=flags, fd=fd).close(upid, fd)

    def pipe(self, upid: int, read: int, write: int, flags: int = 0) -> Self:
        """`upid` makes a pipe with these two descriptors."""
        return self.event(upid, "Pipe", fd1=read, fd2=write, flags=flags)

    def dup(self, upid: int, old: int, new: int, flags: int = 0) -> Self:
        """`upid` copies descriptor `old` to `new`."""
        return self.event(upid, "Dup", oldfd=old, newfd=new, flags=flags)

    def rename(self, upid: int, source: Text, destination: Text, flags: int | None = None) -> Self:
        """Rename a file; `flags` makes it a renameat2."""
        self._rename_from(upid, source, flags)
        return self.event(upid, "RenameTo", RT=destination)

    def rename_failed(
        self, upid: int, source: Text | None = None, flags: int | None = None
    ) -> Self:
        """Fail to rename a file; without a source it could not be resolved."""
        if source is not None:
            self._rename_from(upid, source, flags)
        return self.event(upid, "RenameFailed")

    def _rename_from(self, upid: int, source: Text, flags: int | None) -> Self:
        if flags is None:
            return self.event(upid, "RenameFrom", RF=source)
        return self.event(upid, "Rename2From", RF=source, flags=flags)

    def link(self, upid: int, source: Text, path: Text, flags: int | None = None) -> Self:
        """Make a hard link; `flags` makes it a linkat."""
        self._link_from(upid, source, flags)
        return self.event(upid, "LinkTo", LT=path)

    def link_failed(self, upid: int, source: Text | None = None, flags: int | None = None) -> Self:
        """Fail to make a hard link; without a source it could not be resolved."""
        if source is not None:
            self._link_from(upid, source, flags)
        return self.event(upid, "LinkFailed")

    def _link_from(self, upid: int, source: Text, flags: int | None) -> Self:
        if flags is None:
            return self.event(upid, "LinkFrom", LF=source)
        return self.event(upid, "LinkatFrom", LF=source, flags=flags)

    def symlink(self, upid: int, target: Text, path: Text, resolved: Text | None = None) -> Self:
        """Make a symbolic link; `resolved` when its target exists."""
        return self.event(upid, "Symlink", ST=target, SR=resolved, SL=path)

    def mount(
        self,
        upid: int,
        target: Text,
        *,
        source: Text | None = None,
        fstype: Text | None = None,
        flags: int = 0,
        ok: bool = True,
    ) -> Self:
        """Mount a file system."""
        self.event(upid, "Mount", MS=source, MT=target, MX=fstype, flags=flags)
        return self if ok else self.event(upid, "MountFailed")

    def umount(self, upid: int, target: Text | None, flags: int = 0, *, ok: bool = True) -> Self:
        """Unmount; without a target it could not be resolved and `ok` must be false."""
        if target is not None:
            self.event(upid, "Umount", MT=target, flags=flags)
        return self if ok else self.event(upid, "UmountFailed")

    def usage(self, upid: int, *values: int) -> Self:
        """Add what a process has used so far: the first numbers of a Usage, the others unknown."""
        names = ("user", "system", "maxrss", "rchar", "wchar", "voluntary", "forced")
        known = dict(zip(names, values, strict=False))
        return self.event(upid, "Usage", **{name: known.get(name, -1) for name in names})

    def written(self, upid: int, text: Text, *, fd: int = 2, cut: int = 0) -> Self:
        """A process wrote a piece of text, after `cut` bytes that the trace lacks."""
        return self.event(upid, "Written", fd=fd, cut=cut, OU=text)

    def comm(self, upid: int, name: Text) -> Self:
        """A thread changes its name."""
        return self.event(upid, "Comm", CN=name)

    def env(self, variable: Text, *upids: int) -> Self:
        """These processes were started with `variable` (`NAME=value`)."""
        head = self.head(0)
        lines = b"".join(head + b"UPID|%d\n" % upid for upid in upids)
        return self._add(0, lines + event_lines.env_lines(head, os.fsencode(variable)))
