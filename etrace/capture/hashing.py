# SPDX-License-Identifier: Apache-2.0
"""`etrace run --hash`: a process beside the build that hashes what it reads and writes.

It follows the trace while that is written (every backend appends whole lines), so no tracer waits
for it, and has the rights of the owner of the trace and no others. A file is hashed

- when it is opened for reading or executed for the first time, unless a living process writes it;
- when the process that opened it for writing has ended, or it was renamed or linked: a program may
  close a file and go on writing to it through a mapping, but none does so after its end;
- at the end of the build, if its state is another one by then.

Each is looked up by name in the mount namespace and root directory of `etrace run`.
"""

from __future__ import annotations

import os
import re
import select
import signal
import stat

from etrace.capture.files import TRACE
from etrace.nfsdb.hash_records import MAX_BYTES, SUFFIX, Hashed, Inode, State, read, write
from etrace.nfsdb.hashing import Pool, inode_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import NoReturn

    from etrace.capture.options import Options

PAUSE_S = 0.03
PIECE_BYTES = 1 << 20
#: after the build: without a result for so long the rest is given up
PATIENCE_S = 10.0
N_THREADS = 4
#: the build goes first
NICE = 5
#: names that a trace has while it is written: the rootless backends', kmod's and strace's, its own
NAMES = (f"{TRACE}.starting", f"{TRACE}.capturing", TRACE)
O_ACCMODE, O_RDONLY = 3, 0
#: opened for something else than the content of a file
NO_CONTENT = os.O_PATH | os.O_DIRECTORY

# ---- lines ----

LINE = re.compile(
    rb"^(\d+),\d+,\d+,\d+!"
    rb"(?:(FN|RT|LT|PI|PP|Cont)(\[\d+\]|\|)(.*)|(Open)\|fnamesize=\d+,forigsize=\d+,flags=(\d+).*"
    rb"|(FN_end|RT_end|LT_end|PI_end|PP_end|Cont_end|FO\b|CW\b|Exit\b).*)$",
    re.M,
)
#: strings of a renamed or linked file, and of a program
MOVED, PROGRAMS = (b"RT", b"LT"), (b"PI", b"PP")


class Reader:
    """Pieces of a trace -> (upid, kind, path) of what happens to files.

    Kinds are `read`, `write`, `move`, `program` and `exit`. The lines of an event of one upid
    follow each other; lines of other upids may be between them.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._flags: dict[bytes, int] = {}
        #: by upid: the tag of a string that may go on, and its pieces
        self._open: dict[bytes, tuple[bytes, list[bytes]]] = {}

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield what the whole lines so far say."""
        text = self._rest + piece
        end = text.rfind(b"\n") + 1
        self._rest = text[end:]
        for found in LINE.finditer(text, 0, end):
            upid, tag, number, part, opened, flags, last = found.groups()
            if tag == b"Cont":
                if upid in self._open:
                    self._open[upid][1].append(b"\n" + part)
            elif tag is not None:
                if number == b"|" or upid not in self._open or self._open[upid][0] != tag:
                    yield from self._ended(upid)
                    self._open[upid] = (tag, [])
                self._open[upid][1].append(part)
            elif last != b"Cont_end":
                yield from self._ended(upid)
                if opened:
                    self._flags[upid] = int(flags)
                elif last == b"Exit":
                    yield upid, "exit", b""

    def finish(self) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield what is left at the end of the trace."""
        for upid in tuple(self._open):
            yield from self._ended(upid)

    def _ended(self, upid: bytes) -> Iterator[tuple[bytes, str, bytes]]:
        if upid not in self._open:
            return
        tag, parts = self._open.pop(upid)
        path = b"".join(parts)
        if tag in MOVED:
            yield upid, "move", path
        elif tag in PROGRAMS:
            yield upid, "program", path
        else:
            flags = self._flags.pop(upid, NO_CONTENT)
            if not flags & NO_CONTENT:
                yield upid, "read" if flags & O_ACCMODE == O_RDONLY else "write", path


# ---- what is hashed when ----


class Hashing:
    """Events of a build -> the states of its files, hashed by a pool."""

    def __init__(self, known: Mapping[Inode, tuple[str, str]] | None = None) -> None:
        n_cpus = len(os.sched_getaffinity(0))
        self.pool = Pool(min(N_THREADS, n_cpus), known)
        self.records: list[tuple[bytes, Hashed]] = []
        #: path -> the last state with hashes, None when there is none
        self._last: dict[bytes, Hashed | None] = {}
        self._writers: dict[bytes, set[bytes]] = {}
        self._written: dict[bytes, set[bytes]] = {}
        self._programs: set[bytes] = set()

    def _add(self, path: bytes) -> None:
        self.pool.add(path, is_program=path in self._programs)

    def take(self, upid: bytes, kind: str, path: bytes) -> None:
        """Take an event."""
        if kind == "exit":
            for each in self._written.pop(upid, ()):
                self._end_writing(upid, each)
        elif not path.startswith(b"/"):
            return
        elif kind == "write":
            self._last.setdefault(path, None)
            self._written.setdefault(upid, set()).add(path)
            self._writers.setdefault(path, set()).add(upid)
        elif kind == "move" or path not in self._last:
            self._last.setdefault(path, None)
            if kind == "program":
                self._programs.add(path)
            if path not in self._writers:
                self._add(path)

    def _end_writing(self, upid: bytes, path: bytes) -> None:
        writers = self._writers.get(path, set())
        writers.discard(upid)
        if not writers:
            self._writers.pop(path, None)
            self._add(path)

    def collect(self, timeout_s: float = 0) -> bool:
        """Take the results so far; return whether there was one."""
        any_found = False
        while (found := self.pool.take(timeout_s)) is not None:
            path, hashed = found
            any_found, timeout_s = True, 0
            last = self._last.get(path)
            if hashed == last or (last is not None and last.sha256 and not hashed.inode):
                continue  # nothing new, or it was hashed and cannot be any more
            self.records.append(found)
            self._last[path] = hashed
        return any_found

    def wait(self) -> None:
        """Wait until all is hashed, or nothing is for a long time."""
        while self.pool.n_left and self.collect(PATIENCE_S):
            pass

    def look_again(self) -> None:
        """At the end of the build hash what is in another state than when it was hashed."""
        self.wait()
        for path, last in tuple(self._last.items()):
            if last is None or last.state in (State.GONE, State.UNSTABLE):
                self._add(path)
                continue
            if last.inode is None or not self.pool.may_look(path):  # mounted over meanwhile
                continue
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and inode_of(status) != last.inode:
                self._add(path)
        self.wait()


# ---- the process ----


class _Follower:
    """Reads the trace of a capture that has just begun, in the directory `folder`."""

    def __init__(self, folder: int) -> None:
        self.folder = folder
        #: what the names are of before the capture; a number of an inode may be used again
        self._older = [self._identity(name) for name in NAMES]
        self.fd = -1

    def _identity(self, name: str) -> tuple[int, int, int] | None:
        try:
            status = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_ctime_ns

    def find(self) -> None:
        """Open the trace if it is there; without its lock, which the capture is about to take."""
        for name in NAMES:
            try:
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
                fd = os.open(name, flags, dir_fd=self.folder)
            except OSError:
                continue
            status = os.fstat(fd)
            identity = (status.st_dev, status.st_ino, status.st_ctime_ns)
            if stat.S_ISREG(status.st_mode) and identity not in self._older:
                self.fd = fd
                return
            os.close(fd)

    def read(self) -> bytes:
        """Return what has come."""
        return os.read(self.fd, PIECE_BYTES) if self.fd >= 0 else b""

    def is_published(self) -> bool:
        """Whether the trace has its name."""
        if self.fd < 0:
            return False
        status = os.fstat(self.fd)
        return self._identity(TRACE) == (status.st_dev, status.st_ino, status.st_ctime_ns)


def open_older(folder: int, uid: int) -> int | None:
    """Open the hashes of the capture before, if only its user could write or read them."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        found = os.stat(f"{TRACE}{SUFFIX}", dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return None
        fd = os.open(f"{TRACE}{SUFFIX}", flags, dir_fd=folder)
    except OSError:
        return None
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077:
        return fd
    os.close(fd)
    return None


def read_older(older: int | None) -> dict[Inode, tuple[str, str]]:
    """Return the digests of the states of files that the capture before has read.

    A state that is still the same is not read again, as git does with its index: most of what a
    build reads are compilers and libraries, which stay.
    """
    if older is None:
        return {}
    try:
        with open(older, "rb") as stream:  # noqa: PTH123  a descriptor
            records = read(stream.read(MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return {
        found.inode: (found.sha256, found.git_blob)
        for _, found in records
        if found.inode is not None and found.sha256
    }


def _follow(over: int, follower: _Follower, older: int | None) -> None:
    """Hash until the other end of the pipe `over` is closed; then write the file."""
    hashing, reader = Hashing(read_older(older)), Reader()
    is_over = False
    while True:
        if follower.fd < 0:
            follower.find()
        piece = follower.read()
        for event in reader.feed(piece):
            hashing.take(*event)
        hashing.collect()
        if piece:
            continue
        if is_over:
            break
        is_over = bool(select.select([over], [], [], PAUSE_S)[0])
    for event in reader.finish():
        hashing.take(*event)
    if follower.is_published():
        hashing.look_again()
        _write(follower.folder, hashing)


def _write(folder: int, hashing: Hashing) -> None:
    """Write `.nfsdb.hashes`, whole or not at all. OSError."""
    name = f"{TRACE}{SUFFIX}"
    temporary = f"{name}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(fd, "wb") as stream:  # noqa: PTH123  a descriptor
            write(stream, hashing.records)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def _live(over: int, options: Options, follower: _Follower, older: int | None) -> NoReturn:
    """Be the process: never return."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        os.nice(NICE)
        if options.owner is not None:  # root: for good, all three of them
            os.setgroups(options.owner.groups)
            os.setresgid(options.owner.gid, options.owner.gid, options.owner.gid)
            os.setresuid(options.owner.uid, options.owner.uid, options.owner.uid)
        _follow(over, follower, older)
        status = 0
    except Exception as error:  # noqa: BLE001  else nobody would see it
        reason = error.strerror if isinstance(error, OSError) else repr(error)
        text = f"etrace: cannot write {options.trace}{SUFFIX}: {reason}\n"
        os.write(2, text.encode(errors="replace"))
    finally:
        os._exit(status)


class Helper:
    """The process of a capture; `end()` lets it hash the rest and waits for it.

    `cpu_s` is the CPU time that it took, once it has ended.
    """

    cpu_s = 0.0

    def __init__(self, options: Options) -> None:
        assert options.folder is not None
        uid = os.geteuid() if options.owner is None else options.owner.uid
        older = open_older(options.folder, uid)
        follower = _Follower(options.folder)
        over, self._writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._writer)
            _live(over, options, follower, older)
        os.close(over)
        if older is not None:
            os.close(older)

    def end(self) -> bool:
        """Let it hash the rest after the build; return whether it wrote its file."""
        os.close(self._writer)
        try:
            _, status, used = os.wait4(self._pid, 0)
        except KeyboardInterrupt:
            os.kill(self._pid, signal.SIGKILL)
            _, status, used = os.wait4(self._pid, 0)
        self.cpu_s = used.ru_utime + used.ru_stime
        return status == 0
