# SPDX-License-Identifier: Apache-2.0
"""Paths -> SHA-256 and git blob id of the regular files there, by threads (docs/hashes.md).

Nothing is opened that a build could not have read: no pipe, no device, no file of the kernel, none
that a program serves (FUSE), and no other file that a link leads to meanwhile. Each inode state
(device, inode, size, both times) is read once, whatever its names. A file whose state differs
before and after it was read is `unstable` and has no hash.

Kernels before 6.13 count the times of files in ticks (4 ms, 10 ms at CONFIG_HZ=100), so a change
within one would stay unseen. A file is therefore read when its last change is older than that. git
calls such an entry of its index "racily clean".

hashlib releases the GIL for more than 2 kB. The id of a blob is the SHA-1 of `blob SIZE`, a null
byte and the content (gitformat-loose, git-hash-object).
"""

from __future__ import annotations

import hashlib
import os
import queue
import re
import select
import stat
import threading
import time
from collections.abc import Callable, Mapping

from libetrace.core.regular_file import STORING, mount_of

from etrace.nfsdb.hash_records import Hashed, Inode, State

PIECE_BYTES = 1 << 18
#: longer than a tick of the kernel that counts the times of files
TICK_NS = 20_000_000
#: a file that changes all the time is looked at so often
ATTEMPTS = 3
MOUNTINFO = "/proc/self/mountinfo"
#: a blank in it; no codec, whose module may be out of the reach of a user
ESCAPED = re.compile(rb"\\([0-7]{3})")
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class RefusedError(Exception):
    """A file that is not read."""

    def __init__(self, state: State) -> None:
        super().__init__(state.word)
        self.state = state


def inode_of(status: os.stat_result) -> Inode:
    """Return the state of a file from what stat(2) says."""
    return Inode(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


# ---- file systems ----


def _is_read(kind: str, has_device: bool) -> bool:
    """Whether files of a file system are the content that somebody wrote, and no program's answer.

    fuseblk has a device and is served by a program, too.
    """
    return not kind.startswith("fuse") and (has_device or kind in STORING)


class Mounts:
    """The mounted file systems by path, read again when they change (proc(5), mountinfo).

    It keeps threads from waiting for a program that serves files: even a name in them is an answer.
    """

    def __init__(self) -> None:
        self._file = open(MOUNTINFO, "rb", buffering=0)  # noqa: PTH123, SIM115  kept
        self._changes = select.poll()
        self._changes.register(self._file, select.POLLPRI)
        self._lock = threading.Lock()
        self._by_path: dict[bytes, bool] = {}
        self._by_folder: dict[bytes, bool] = {}
        self._read()

    def _read(self) -> None:
        self._file.seek(0)
        pieces = []
        while piece := self._file.read(PIECE_BYTES):
            pieces.append(piece)
        self._by_path, self._by_folder = {}, {}
        for line in b"".join(pieces).split(b"\n"):
            fields, _, rest = line.partition(b" - ")
            words = fields.split(b" ")
            if len(words) > 4:
                path = ESCAPED.sub(lambda octal: bytes((int(octal[1], 8),)), words[4])
                kind = os.fsdecode(rest.partition(b" ")[0])
                self._by_path[path] = _is_read(kind, not words[2].startswith(b"0:"))

    def are_read(self, path: bytes) -> bool:
        """Whether files at an absolute path may be opened."""
        with self._lock:
            if self._changes.poll(0):
                self._read()
            folder = path.rpartition(b"/")[0]
            known = self._by_folder.get(folder)
            if known is None:
                known = self._by_folder[folder] = self._find(path)
            return self._by_path.get(path, known)

    def _find(self, path: bytes) -> bool:
        while path not in (b"", b"/"):
            path = path.rpartition(b"/")[0]
            if (known := self._by_path.get(path or b"/")) is not None:
                return known
        return True  # in another root directory nothing is known of what it is on


# ---- one file ----


def open_content(path: bytes, is_read: Callable[[bytes], bool], *, is_program: bool = False) -> int:
    """Open a regular file of a disk for reading, by its absolute path; nothing here waits.

    `is_read` is `Mounts.are_read`. The kernel's name of an opened file has no link in it, that of
    a program may be one: only that link is followed. RefusedError for all other files, OSError.
    """
    if not is_read(path):
        raise RefusedError(State.SPECIAL)
    name = os.open(path, LOOK)
    try:
        if is_program and stat.S_ISLNK(os.fstat(name).st_mode):
            os.close(name)
            name = -1
            path = os.path.realpath(path)
            if not is_read(path):
                raise RefusedError(State.SPECIAL)
            name = os.open(path, LOOK)
        return _open_name(name, path)
    finally:
        if name >= 0:
            os.close(name)


#: device -> whether its files are read
_devices: dict[int, bool] = {}


def _open_name(name: int, path: bytes) -> int:
    status = os.fstat(name)
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError(State.SPECIAL)
    known = _devices.get(status.st_dev)
    if known is None:
        mount = mount_of(name)
        known = mount is None or _is_read(mount.kind, mount.has_device)
        _devices[status.st_dev] = known
    link = f"/proc/self/fd/{name}"
    if not known or os.readlink(os.fsencode(link)) != path:  # noqa: PTH115  bytes
        raise RefusedError(State.SPECIAL if os.fstat(name).st_nlink else State.GONE)
    return os.open(link, READ)


def _digest(fd: int, size: int, room: memoryview) -> tuple[str, str]:
    """Return SHA-256 and blob id of a file of so many bytes; RefusedError when it has others."""
    sha256 = hashlib.sha256(usedforsecurity=False)
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    left = size
    while n_bytes := os.readv(fd, (room,)):
        piece = room[:n_bytes]
        sha256.update(piece)
        blob.update(piece)
        left -= n_bytes
        if left < 0:
            break
    if left:
        raise RefusedError(State.UNSTABLE)
    return sha256.hexdigest(), blob.hexdigest()


def _settled(fd: int) -> Inode:
    """Return the state of an open file whose last change is older than a tick of the clock."""
    for _ in range(ATTEMPTS):
        inode = inode_of(os.fstat(fd))
        age_ns = time.time_ns() - inode.ctime_ns
        if age_ns > TICK_NS or age_ns < -TICK_NS:  # in the future: by the clock of another machine
            return inode
        time.sleep((TICK_NS - max(age_ns, 0)) / 1e9 + 0.001)
    raise RefusedError(State.UNSTABLE)


class _Once:
    """Digests by inode state; whoever asks for one that is being made waits for it."""

    def __init__(self, known: Mapping[Inode, tuple[str, str]]) -> None:
        self._lock = threading.Lock()
        self._made: dict[Inode, tuple[str, str] | threading.Event] = dict(known)
        self.n_read = self.n_bytes = 0

    def digests(self, fd: int, inode: Inode, room: memoryview) -> tuple[str, str]:
        """Return the digests of an open file; it is read unless its state was. RefusedError."""
        while True:
            with self._lock:
                known = self._made.get(inode)
                if known is None:
                    self._made[inode] = event = threading.Event()
                    self.n_read += 1
                    self.n_bytes += inode.size
            if known is None:
                return self._make(fd, inode, room, event)
            if not isinstance(known, threading.Event):
                return known
            known.wait()

    def _make(
        self, fd: int, inode: Inode, room: memoryview, event: threading.Event
    ) -> tuple[str, str]:
        made = None
        try:
            made = _digest(fd, inode.size, room)
            if inode_of(os.fstat(fd)) != inode:
                made = None
                raise RefusedError(State.UNSTABLE)
            return made
        finally:
            with self._lock:
                if made is None:
                    del self._made[inode]
                else:
                    self._made[inode] = made
            event.set()


class Hasher:
    """Hashes one path after the other; one for each thread, with what they share."""

    def __init__(self, mounts: Mounts, once: _Once) -> None:
        self._is_read, self._once = mounts.are_read, once
        self._room = memoryview(bytearray(PIECE_BYTES))

    def hash(self, path: bytes, *, is_program: bool = False) -> Hashed:
        """Return the digests of the file at an absolute path, or why there are none."""
        inode = None
        try:
            fd = open_content(path, self._is_read, is_program=is_program)
            try:
                inode = _settled(fd)
                return Hashed(State.TRACED, inode, *self._once.digests(fd, inode, self._room))
            finally:
                os.close(fd)
        except RefusedError as refused:
            return Hashed(refused.state, inode)
        except (FileNotFoundError, NotADirectoryError):
            return Hashed(State.GONE)
        except (OSError, ValueError):
            return Hashed(State.UNREADABLE)


# ---- threads ----


class Pool:
    """Threads that hash paths; results are taken in any order.

    They are daemons: one that waits for a dead server of files keeps nobody.
    """

    def __init__(
        self, n_threads: int, known: Mapping[Inode, tuple[str, str]] | None = None
    ) -> None:
        """`known` has digests of states that need not be read."""
        self._mounts, self._once = Mounts(), _Once(known or {})
        self._paths: queue.SimpleQueue[tuple[bytes, bool]] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[tuple[bytes, Hashed]] = queue.SimpleQueue()
        self._n_threads, self._n_started, self.n_left = n_threads, 0, 0

    @property
    def n_read(self) -> int:
        """How many inode states were read."""
        return self._once.n_read

    @property
    def n_bytes(self) -> int:
        """How many bytes they have."""
        return self._once.n_bytes

    def may_look(self, path: bytes) -> bool:
        """Whether stat(2) of an absolute path asks no program that serves files."""
        return self._mounts.are_read(path)

    def add(self, path: bytes, *, is_program: bool = False) -> None:
        """Let a thread hash an absolute path; that of a program may be a link to it."""
        self.n_left += 1
        self._paths.put((path, is_program))
        if self._n_started < min(self._n_threads, self.n_left):
            self._n_started += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        hasher = Hasher(self._mounts, self._once)
        while True:
            path, is_program = self._paths.get()
            self._found.put((path, hasher.hash(path, is_program=is_program)))

    def take(self, timeout_s: float = 0) -> tuple[bytes, Hashed] | None:
        """Return a path with what was found, None when there is none in time."""
        try:
            found = self._found.get(timeout_s > 0, timeout_s or None)
        except queue.Empty:
            return None
        self.n_left -= 1
        return found
