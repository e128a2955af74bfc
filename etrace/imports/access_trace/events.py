# SPDX-License-Identifier: Apache-2.0
"""A file access trace -> event lines: processes, programs, opens, renames and links.

An operation has a place in the order but no time. Its stamp is after that of the one before;
processes begin and end at their own times where the order allows it. No operation closes a file:
what is written stays open until its process ends, what is read is closed at once.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import BinaryIO

from etrace.errors import EtraceError
from etrace.imports.access_trace import model, names
from etrace.imports.access_trace.model import (
    EXEC,
    EXIT,
    PROCESS,
    AccessTrace,
    Instance,
    Instances,
    Operation,
)
from etrace.imports.event_lines import EventLines

MAX_NS = (1 << 62) - 1
CREAT = os.O_CREAT | os.O_TRUNC
CREATES = frozenset((b"CreateFile",))
#: operations of two halves: source -> destination
RENAMES = {
    b"MoveFileSource": b"MoveFileDestination",
    b"MoveFileWithProgressSource": b"MoveFileWithProgressDest",
    b"SetFileInformationByHandleSource": b"SetFileInformationByHandleDest",
    b"ZwSetRenameInformationFileSource": b"ZwSetRenameInformationFileDest",
    b"ZwSetFileNameInformationFileSource": b"ZwSetFileNameInformationFileDest",
}
LINKS = {
    b"CreateHardLinkSource": b"CreateHardLinkDestination",
    b"CreateHardlinkSource": b"CreateHardlinkDest",
}
#: what names without opening, or opens nothing that has content
NO_OPENS = frozenset(
    b"""Probe GetFileAttributes GetFileAttributesEx FindFirstFileEx FindNextFile Readlink Close
    CreateDirectory RemoveDirectory RemoveDirectorySource DeleteFile CreateProcess
    ReparsePointTarget ReparsePointTargetCached ProcessBreakaway ProcessTreeCompletedAck
    ProcessRequiresPTrace ChangedReadWriteToReadAccess FirstAllowWriteCheckInProcess
    ZwSetDispositionInformationFile ZwSetModeInformationFile""".split()
)
DELETE = b"DeleteFile"


class Events:
    """Writes the event lines of one trace. `left_out` counts operations without an event."""

    def __init__(self, trace: AccessTrace, stream: BinaryIO) -> None:
        self.trace = trace
        self.out = EventLines(stream, b"/")
        self.left_out: Counter[str] = Counter()
        self._instances = Instances(self.out.pid_bits)
        self._accesses = {n: names.access_mask(text) for n, text in trace.accesses.items()}
        execs = {number for number, name in trace.operations.items() if name == EXEC}
        self._executing = {e.pid for e in trace.events if e.operation in execs and not e.error}
        self._has_execs = bool(execs)
        self._pairs = {each.id: each.other for each in trace.correlations}
        self._access_ids = {each.access: each.id for each in trace.correlations}
        self._now_ns = 0

    def write(self) -> None:
        """Write all lines. EtraceError when the trace has no process."""
        for line in self.trace.processes:
            self._instances.add(line.pid, line)
        events = self.trace.events
        at = 0
        while at < len(events):
            after = events[at + 1] if at + 1 < len(events) else None
            at += self._take(events[at], after)
        for instance in self._instances.rest():
            self._begin(instance)
        for instance in self._instances.all:
            self._end(instance)
        self.out.flush()
        if not self._instances.all:
            raise EtraceError("the trace has no process and no operation", "was it cut off?")

    # ---- time ----

    def _stamp(self, instance: Instance, at: int | None = None) -> int:
        """Return the stamp of the next event: later than the one before, `at` if that is later."""
        wanted = 0 if at is None else min(max(model.unix_ns(at), 0), MAX_NS)
        self._now_ns = max(self._now_ns + 1, wanted)
        instance.last_ns = self._now_ns
        return self._now_ns

    # ---- processes ----

    def _begin(self, instance: Instance) -> None:
        """Begin a process, before it the processes that made it."""
        chain: dict[int, Instance] = {}
        at: Instance | None = instance
        while at is not None and not at.has_begun and at.upid not in chain:
            chain[at.upid] = at
            at = self._instances.parent(at)
        for each in reversed(chain.values()):
            self._begin_one(each)

    def _begin_one(self, instance: Instance) -> None:
        line = instance.line
        parent = self._instances.parent(instance)
        if parent is not None and not parent.has_begun:  # a circle
            parent = None
        instance.has_begun = True
        if parent is not None:
            start = line.start if line else None
            self.out.put(parent.upid, self._stamp(parent, start), "SchedFork", (instance.upid,))
        is_reported = self._has_execs and (parent is not None or instance.pid in self._executing)
        if line is not None and is_reported and parent is None:
            self._stamp(instance, line.start)  # of its first event
        if line is not None and not is_reported:
            self._execute(instance, line.program, line.command_line, line.start)

    def _execute(
        self, instance: Instance, program: bytes, command_line: bytes, at: int | None = None
    ) -> None:
        argv = words(command_line) or [program]
        strings = (program, program, b"")
        self.out.execution(instance.upid, self._stamp(instance, at), strings, argv)

    def _end(self, instance: Instance) -> None:
        if instance.has_ended or instance.line is None:
            return
        instance.has_ended = True
        code = instance.line.exit_code
        if code == model.NO_EXIT_CODE:
            return
        ends_ns = min(max(model.unix_ns(instance.line.end), 0), MAX_NS)
        instance.last_ns = max(instance.last_ns, ends_ns)
        self.out.put(instance.upid, instance.last_ns, "Exit", (code & 0xFF,))

    # ---- operations ----

    def _take(self, event: Operation, after: Operation | None) -> int:
        """Write one operation, or the two halves of one; return how many it was."""
        name = self.trace.operations[event.operation]
        instance = self._instances.of(event.pid, name)
        if not instance.has_begun:
            self._begin(instance)
        if name in (PROCESS, EXIT):
            if name == EXIT:
                self._end(instance)
            return 1
        path = self.trace.path_of(event)
        if event.error or not path:
            self.left_out["access{es} that failed"] += 1
        elif name == EXEC:
            self._executed(instance, path)
        elif after is not None and self._is_pair(event, after):
            self._pair(instance, name, path, self.trace.path_of(after))
            return 2
        else:
            self._opened(instance, name, self._accesses[event.access], path)
        return 1

    def _executed(self, instance: Instance, path: bytes) -> None:
        """Write a program; its arguments are known when it is the one that the line shows."""
        line = instance.line
        is_last = line is not None and line.program == path
        self._execute(instance, path, line.command_line if line and is_last else b"")

    def _is_pair(self, event: Operation, after: Operation) -> bool:
        if after.pid != event.pid or after.error:
            return False
        name = self.trace.operations[event.operation]
        second = self.trace.operations[after.operation]
        if second in (RENAMES.get(name), LINKS.get(name)):
            return True
        if name != DELETE or second not in (b"CreateFile", b"WriteFile"):
            return False
        if self._pairs:
            return self._access_ids.get(self._pairs.get(after.id, 0)) == event.id
        return self.trace.path_of(event) != self.trace.path_of(after)

    def _pair(self, instance: Instance, name: bytes, old: bytes, new: bytes) -> None:
        first, second = ("LinkFrom", "LinkTo") if name in LINKS else ("RenameFrom", "RenameTo")
        time_ns = self._stamp(instance)
        self.out.put(instance.upid, time_ns, first, (), (old,))
        self.out.put(instance.upid, time_ns, second, (), (new,))

    def _opened(self, instance: Instance, name: bytes, access: int | None, path: bytes) -> None:
        mask = names.NO_ACCESS if access is None else access
        if name in NO_OPENS or not mask & (names.READ_WRITE | names.ENUMERATE):
            self.left_out["access{es} that {opens|open} nothing"] += 1
            return
        flags = os.O_RDONLY
        if mask & names.WRITE:
            flags = os.O_RDWR if mask & names.READ else os.O_WRONLY
            flags |= CREAT if name in CREATES else 0
        elif mask & names.ENUMERATE:
            flags |= os.O_DIRECTORY
        fd = instance.n_open
        self.out.put(instance.upid, self._stamp(instance), "Open", (flags, 0, fd), (path, path))
        if mask & names.WRITE:
            instance.n_open += 1
        else:
            self.out.put(instance.upid, self._stamp(instance), "Close", (fd,))


def words(command_line: bytes) -> list[bytes]:
    """Return the arguments of a command line: quotes as Windows has them, no other escapes."""
    if b'"' not in command_line:
        return command_line.split()
    out: list[bytes] = []
    word, quoted, begun = b"", False, False
    for char in (command_line[i : i + 1] for i in range(len(command_line))):
        if char == b'"':
            quoted, begun = not quoted, True
        elif char in b" \t" and not quoted:
            if word or begun:
                out.append(word)
            word, begun = b"", False
        else:
            word += char
    return [*out, word] if word or begun else out
