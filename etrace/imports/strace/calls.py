# SPDX-License-Identifier: Apache-2.0
"""A call of strace -> its events. Failed calls make none, but renames, links, clones and mounts do.

The meaning of each event is that of docs/format.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from etrace.imports.event_lines import EventLines
from etrace.imports.strace import values
from etrace.imports.strace.lines import Result
from etrace.imports.strace.paths import MAX_SCRIPTS, Resolver, UnknownDirectoryError, join
from etrace.imports.strace.tasks import Task
from etrace.imports.strace.values import AT_FDCWD, NUMBERS, Descriptor, Text
from etrace.redaction.commands import without_secret
from etrace.spec.builders import is_builder

O_CLOEXEC = NUMBERS[b"O_CLOEXEC"]
CREAT_FLAGS = NUMBERS[b"O_CREAT"] | NUMBERS[b"O_WRONLY"] | NUMBERS[b"O_TRUNC"]
DUPS = {NUMBERS[b"F_DUPFD"]: 0, NUMBERS[b"F_DUPFD_CLOEXEC"]: O_CLOEXEC}
F_SETFD, FD_CLOEXEC = NUMBERS[b"F_SETFD"], NUMBERS[b"FD_CLOEXEC"]
CLOSE_RANGE_CLOEXEC = NUMBERS[b"CLOSE_RANGE_CLOEXEC"]
FOLLOW = NUMBERS[b"AT_SYMLINK_FOLLOW"]
PR_SET_NAME = NUMBERS[b"PR_SET_NAME"]
COMM_BYTES = 15
U32, U64 = (1 << 32) - 1, (1 << 64) - 1
MAX_INT = (1 << 31) - 1

#: what a log has only in part; keys of `Calls.lacks`
CUT = "string{s} {was|were} cut off by strace; record with -s 131072"
ADDRESS = "argument{s} {is|are} not shown by strace: the memory could not be read"
HOMELESS = "program{s} {has|have} no working directory: that of a process without parent is unknown"
NO_DIRECTORY = "call{s} {was|were} left out: relative to a directory that the log does not show"
UNRESOLVED = "open{s} {has|have} no path of the file: links are not followed; record with -y"


_OWN_FD = re.compile(rb"(?:/proc/(?:self|thread-self)/fd|/dev/fd)/(\d{1,9})")
_OWN_EXE = re.compile(rb"/proc/(?:self|thread-self)/exe")


#: memory of the environments that are kept, of one variable and of one process that had it
KEPT_BYTES, VARIABLE_BYTES, UPID_BYTES = 64 << 20, 350, 100


class BadCallError(Exception):
    """The arguments of a call are not those that it has."""


class Calls:
    """Writes the events of calls. `lacks` counts what the log lacks.

    Without `keeps_environments` only make and ninja keep theirs, without secrets.
    """

    def __init__(
        self, out: EventLines, resolver: Resolver, *, keeps_environments: bool = True
    ) -> None:
        self.out = out
        self._keeps_environments = keeps_environments
        self.resolver = resolver
        self.seen: set[bytes] = set()
        self.lacks: Counter[str] = Counter()
        self._environment: dict[bytes, dict[int, None]] = {}
        self._environment_bytes = 0
        #: argv[0] of programs that were given `@FILE`, and how many files
        self.responses: Counter[bytes] = Counter()
        self._handlers = self._table()

    def handle(self, task: Task, time_ns: int, name: bytes, text: bytes, result: Result) -> None:
        """Write the events of a call that is not a fork. BadCallError."""
        handler = self._handlers.get(name)
        if handler is None:
            return
        self.seen.add(name)
        try:
            handler(task, time_ns, values.arguments(text), result, name)
        except IndexError:
            raise BadCallError from None
        except UnknownDirectoryError:
            self.lacks[NO_DIRECTORY] += 1

    def _table(self) -> dict[bytes, Callable[[Task, int, list[bytes], Result, bytes], None]]:
        return {
            b"execve": self._execve, b"execveat": self._execveat,
            b"open": self._open, b"openat": self._openat, b"openat2": self._openat2,
            b"creat": self._creat, b"close": self._close, b"close_range": self._close_range,
            b"pipe": self._pipe, b"pipe2": self._pipe,
            b"dup": self._dup, b"dup2": self._dup, b"dup3": self._dup,
            b"fcntl": self._fcntl, b"fcntl64": self._fcntl, b"ioctl": self._ioctl,
            b"rename": self._rename, b"renameat": self._renameat, b"renameat2": self._renameat,
            b"link": self._link, b"linkat": self._linkat,
            b"symlink": self._symlink, b"symlinkat": self._symlinkat,
            b"chdir": self._chdir, b"fchdir": self._fchdir,
            b"exit_group": self._exit, b"exit": self._exit,
            b"mount": self._mount, b"umount": self._umount, b"umount2": self._umount,
            b"prctl": self._prctl,
        }  # fmt: skip

    # ---- arguments ----

    def _text(self, word: bytes) -> bytes:
        found = self._string(word)
        if found is None:
            raise BadCallError
        return found.value

    def _string(self, word: bytes) -> Text | None:
        found = values.string(word)
        if found is None and word.startswith(b"0x"):
            self.lacks[ADDRESS] += 1
            return Text(b"", is_cut=True)
        if found is not None and found.is_cut:
            self.lacks[CUT] += 1
        return found

    def _number(self, word: bytes) -> int:
        number = values.number(word)
        if number is None:
            raise BadCallError
        return number

    def _fd(self, word: bytes) -> Descriptor:
        found = values.descriptor(word)
        if found is None or not -MAX_INT <= found.number <= U32:
            raise BadCallError
        if found.number > MAX_INT:  # close_range up to ~0U
            return Descriptor(MAX_INT, found.path)
        return found

    def _at(self, task: Task, word: bytes) -> bytes:
        """Return the directory that a descriptor stands for; -y and AT_FDCWD give its true path."""
        fd = self._fd(word)
        if fd.number == AT_FDCWD:
            if fd.path is not None and fd.path.startswith(b"/"):
                task.directory.enter(fd.path)
            return task.directory.path
        return fd.path or task.descriptors.paths.get(fd.number) or b""

    def _meant(self, task: Task, path: bytes) -> bytes:
        """Return what a path below /proc or /dev/fd stands for in a task, if that is known."""
        if path.startswith((b"/proc/", b"/dev/fd/")):
            if found := _OWN_FD.fullmatch(path):
                return task.descriptors.paths.get(int(found[1])) or path
            if _OWN_EXE.fullmatch(path):
                return task.program or path
        return path

    # ---- programs ----

    def _execve(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        self._executed(task, time_ns, args, result, task.directory.path)

    def _execveat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value != 0:
            return
        fd, given = self._fd(args[0]).number, self._text(args[1])
        name = given
        if fd != AT_FDCWD and not given.startswith(b"/"):  # as the kernel names it to a script
            name = b"/dev/fd/%d" % fd + (b"/" + given if given else b"")
        self._executed(task, time_ns, args[1:], result, self._at(task, args[0]), name)

    def _executed(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, directory: bytes,
        name_given: bytes = b"",
    ) -> None:  # fmt: skip
        if result.value != 0:
            return
        given = self._text(args[0])
        argv = self._list(args[1])
        program = self._program(task, directory, given)
        interpreter, argv = self._interpreted(task, name_given or given, program, argv)
        self._close_on_exec(task, time_ns)
        task.program = interpreter
        cwd = task.directory.path
        if not cwd:
            self.lacks[HOMELESS] += 1
        self.out.execution(task.upid, time_ns, (interpreter, program, cwd), argv)
        if files := sum(len(word) > 1 and word.startswith(b"@") for word in argv[1:]):
            self.responses[argv[0]] += files
        if len(args) < 3 or args[2][:1] != b"[":
            return
        if self._keeps_environments:
            self._add_environment(task.upid, time_ns, self._list(args[2]))
        elif is_builder(interpreter):
            self._add_environment(task.upid, time_ns, map(without_secret, self._list(args[2])))

    def _add_environment(self, upid: int, time_ns: int, variables: Iterable[bytes]) -> None:
        for variable in variables:
            upids = self._environment.get(variable)
            if upids is None:
                upids = self._environment[variable] = {}
                self._environment_bytes += VARIABLE_BYTES + len(variable)
            upids[upid] = None
            self._environment_bytes += UPID_BYTES
        if self._environment_bytes > KEPT_BYTES:
            self.put_environment(time_ns)

    def put_environment(self, time_ns: int) -> None:
        """Write the variables and who had them, and forget them: the order means nothing."""
        for text, upids in self._environment.items():
            self.out.variable(upids, time_ns, text)
        self._environment.clear()
        self._environment_bytes = 0

    def _program(self, task: Task, directory: bytes, given: bytes) -> bytes:
        """Return the path of a program; as it was given, when its directory is not known."""
        try:
            path = join(directory, given) if given else directory  # execveat with AT_EMPTY_PATH
        except UnknownDirectoryError:
            return given
        return self.resolver.entry(self._meant(task, path)) if path else given

    def _list(self, word: bytes) -> list[bytes]:
        found = values.strings(word)
        if found is None:
            self.lacks[ADDRESS] += 1
            return []
        cut = sum(each.is_cut for each in found)
        if cut:
            self.lacks[CUT] += cut
        if found and found[-1] == Text(b"", is_cut=True):  # `, ...]`
            found.pop()
        return [each.value for each in found]

    def _interpreted(
        self, task: Task, path: bytes, program: bytes, argv: list[bytes]
    ) -> tuple[bytes, list[bytes]]:
        """Return the program that runs, and its arguments, as the kernel makes them of a script."""
        at, found = path, program
        for _ in range(MAX_SCRIPTS):
            words = self.resolver.script(found)
            if not words:
                break
            argv = [*words, at, *argv[1:]]
            at = words[0]
            found = self._program(task, task.directory.path, at)
        return found, argv

    def _close_on_exec(self, task: Task, time_ns: int) -> None:
        task.descriptors = task.descriptors.own()
        for fd in sorted(task.descriptors.cloexec):
            self.out.put(task.upid, time_ns, "Close", (fd,))
            task.descriptors.close(fd)

    def _exit(
        self, task: Task, _time: int, args: list[bytes], _result: Result, name: bytes
    ) -> None:
        if name == b"exit_group" or task.status is None:
            task.status = self._number(args[0]) & 0xFF

    # ---- descriptors ----

    def _opened(
        self, task: Task, time_ns: int, given: Text | None, result: Result,
        at: bytes, flags: int, mode: int,
    ) -> None:  # fmt: skip
        if result.value is None or result.value < 0 or given is None:
            return
        path = values.opened_path(result.path) if result.path else None
        task.descriptors.open(result.value, path, cloexec=bool(flags & O_CLOEXEC))
        if path is not None and (given.is_cut or not (at or given.value.startswith(b"/"))):
            original = path
        else:
            original = join(at, given.value)
        if path is None:
            self.lacks[UNRESOLVED] += 1
            path = self.resolver.file(self._meant(task, original))
            task.descriptors.open(result.value, path, cloexec=bool(flags & O_CLOEXEC))
        numbers = (flags & U32, mode & U32, result.value)
        self.out.put(task.upid, time_ns, "Open", numbers, (path, original))

    def _open(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value is not None and result.value >= 0:
            mode = self._number(args[2]) if len(args) > 2 else 0
            given, flags = self._string(args[0]), self._number(args[1])
            self._opened(task, time_ns, given, result, task.directory.path, flags, mode)

    def _openat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        at = self._at(task, args[0])
        if result.value is not None and result.value >= 0:
            mode = self._number(args[3]) if len(args) > 3 else 0
            given, flags = self._string(args[1]), self._number(args[2])
            self._opened(task, time_ns, given, result, at, flags, mode)

    def _openat2(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        at = self._at(task, args[0])
        if result.value is None or result.value < 0:
            return
        how = values.fields(args[2])
        flags = self._number(how.get(b"flags", b"0"))
        mode = self._number(how.get(b"mode", b"0"))
        self._opened(task, time_ns, self._string(args[1]), result, at, flags, mode)

    def _creat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value is not None and result.value >= 0:
            given, mode = self._string(args[0]), self._number(args[1])
            self._opened(task, time_ns, given, result, task.directory.path, CREAT_FLAGS, mode)

    def _close(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value == 0 or (result.value is not None and result.error != b"EBADF"):
            fd = self._fd(args[0]).number
            self.out.put(task.upid, time_ns, "Close", (fd,))
            task.descriptors.close(fd)

    def _close_range(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value != 0:
            return
        first, last = self._fd(args[0]).number, self._fd(args[1]).number
        flags = self._number(args[2])
        table = task.descriptors
        for fd in sorted(fd for fd in table.paths if first <= fd <= last):
            if flags & CLOSE_RANGE_CLOEXEC:
                table.mark(fd, cloexec=True)
            else:
                self.out.put(task.upid, time_ns, "Close", (fd,))
                table.close(fd)

    def _pipe(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value != 0:
            return
        ends = [self._fd(word) for word in values.arguments(args[0][1:-1])]
        flags = self._number(args[1]) if len(args) > 1 else 0
        self.out.put(task.upid, time_ns, "Pipe", (ends[0].number, ends[1].number, flags & U32))
        for end in ends[:2]:
            task.descriptors.open(end.number, end.path, cloexec=bool(flags & O_CLOEXEC))

    def _dup(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, name: bytes
    ) -> None:
        flags = self._number(args[2]) if name == b"dup3" else 0
        self._copied(task, time_ns, self._fd(args[0]), result, flags)

    def _fcntl(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        fd, command = self._fd(args[0]), values.number(args[1])
        if command in DUPS:
            self._copied(task, time_ns, fd, result, DUPS[command])
        elif command == F_SETFD and result.value == 0:
            task.descriptors.mark(fd.number, bool(self._number(args[2]) & FD_CLOEXEC))

    def _ioctl(
        self, task: Task, _time: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value == 0 and args[1] in (b"FIOCLEX", b"FIONCLEX"):
            task.descriptors.mark(self._fd(args[0]).number, args[1] == b"FIOCLEX")

    def _copied(
        self, task: Task, time_ns: int, old: Descriptor, result: Result, flags: int
    ) -> None:
        new = result.value
        if new is None or new < 0:
            return
        self.out.put(task.upid, time_ns, "Dup", (old.number, new, flags & O_CLOEXEC))
        if new != old.number:
            path = old.path or task.descriptors.paths.get(old.number)
            task.descriptors.open(new, path, cloexec=bool(flags & O_CLOEXEC))

    # ---- names ----

    def _named(self, at: bytes, word: bytes) -> bytes:
        return self.resolver.entry(join(at, self._text(word)))

    def _moved(
        self, task: Task, time_ns: int, kind: tuple[str, str],
        ends: tuple[bytes, bytes], flags: tuple[int, ...],
    ) -> None:  # fmt: skip
        """Write both halves of a rename or link; `kind` has their tags."""
        self.out.put(task.upid, time_ns, kind[0], flags, (ends[0],))
        self.out.put(task.upid, time_ns, kind[1], (), (ends[1],))

    def _failed(self, task: Task, time_ns: int, result: Result, tag: str) -> bool:
        """Write that a call failed, if it did; a call that is made again says nothing."""
        if result.value is None:
            return True
        if result.value < 0:
            self.out.put(task.upid, time_ns, tag)
        return result.value < 0

    def _rename(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if not self._failed(task, time_ns, result, "RenameFailed"):
            cwd = task.directory.path
            ends = self._named(cwd, args[0]), self._named(cwd, args[1])
            self._moved(task, time_ns, ("RenameFrom", "RenameTo"), ends, ())

    def _renameat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, name: bytes
    ) -> None:
        if self._failed(task, time_ns, result, "RenameFailed"):
            return
        first, second = self._at(task, args[0]), self._at(task, args[2])
        ends = self._named(first, args[1]), self._named(second, args[3])
        if name == b"renameat2":
            flags = (self._number(args[4]) & U32,)
            self._moved(task, time_ns, ("Rename2From", "RenameTo"), ends, flags)
        else:
            self._moved(task, time_ns, ("RenameFrom", "RenameTo"), ends, ())

    def _link(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if not self._failed(task, time_ns, result, "LinkFailed"):
            cwd = task.directory.path
            ends = self._named(cwd, args[0]), self._named(cwd, args[1])
            self._moved(task, time_ns, ("LinkFrom", "LinkTo"), ends, ())

    def _linkat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if self._failed(task, time_ns, result, "LinkFailed"):
            return
        flags, given = self._number(args[4]) & U32, self._text(args[1])
        first, second = self._at(task, args[0]), self._at(task, args[2])
        source = first  # AT_EMPTY_PATH
        if not first and not given:
            raise UnknownDirectoryError
        if given:
            old = self._meant(task, join(first, given))
            source = self.resolver.file(old) if flags & FOLLOW else self.resolver.entry(old)
        ends = source, self._named(second, args[3])
        self._moved(task, time_ns, ("LinkatFrom", "LinkTo"), ends, (flags,))

    def _symlink(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        self._linked(task, time_ns, args, result, task.directory.path)

    def _symlinkat(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        self._linked(task, time_ns, [args[0], args[2]], result, self._at(task, args[1]))

    def _linked(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, at: bytes
    ) -> None:
        if result.value != 0:
            return
        target, link = self._text(args[0]), self._named(at, args[1])
        resolved = self.resolver.target(link)
        self.out.put(task.upid, time_ns, "Symlink", (), (target, resolved, link))

    # ---- directories, mounts, names of threads ----

    def _chdir(
        self, task: Task, _time: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value == 0:
            given = self._text(args[0])
            if task.directory.path or given.startswith(b"/"):
                task.directory.enter(self.resolver.file(join(task.directory.path, given)))

    def _fchdir(
        self, task: Task, _time: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value == 0:
            task.directory.enter(self._at(task, args[0]))

    def _mount(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value is None:
            return
        source, kind = values.string(args[0]), values.string(args[2])
        target = self.resolver.file(join(task.directory.path, self._text(args[1])))
        strings = source.value if source else None, target, kind.value if kind else None
        self.out.put(task.upid, time_ns, "Mount", (self._number(args[3]) & U64,), strings)
        if result.value < 0:
            self.out.put(task.upid, time_ns, "MountFailed")

    def _umount(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if self._failed(task, time_ns, result, "UmountFailed"):
            return
        flags = self._number(args[1]) & U32 if len(args) > 1 else 0
        target = self.resolver.file(join(task.directory.path, self._text(args[0])))
        self.out.put(task.upid, time_ns, "Umount", (flags,), (target,))

    def _prctl(
        self, task: Task, time_ns: int, args: list[bytes], result: Result, _name: bytes
    ) -> None:
        if result.value == 0 and values.number(args[0]) == PR_SET_NAME:
            name = values.string(args[1])  # strace cuts it as the kernel does
            if name is not None:
                self.out.put(task.upid, time_ns, "Comm", (), (name.value[:COMM_BYTES],))
