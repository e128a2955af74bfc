# SPDX-License-Identifier: Apache-2.0
"""The files of a capture in their directory, always reached with the rights of their owner.

While it is written the trace is `.nfsdb.capturing`; `.nfsdb` and `.nfsdb.stats` appear whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from libetrace.core.folders import open_folder

from etrace.capture.files import OLD_SUFFIX, SIDE_SUFFIXES, STATS, TRACE, is_being_written
from etrace.capture.kmod.system.owner import Owner, acting_as, home_of
from etrace.errors import CaptureError
from etrace.nfsdb import marks
from etrace.nfsdb.files import CAPTURING

ZSTD_SUFFIX = ".zst"
#: an unfinished trace after a crash of the machine
PARTIAL = TRACE + ".partial"
MAX_PARTIAL = 100
#: as /proc/PID/environ: arguments and environments of root's programs hold secrets
MODE = 0o600
#: of a session whose service died: the user's process alone still has the file
GONE = -1
NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Output:
    """A directory that a capture writes into. `identity` is its device and inode."""

    directory: Path
    owner: Owner
    identity: tuple[int, int]

    @property
    def capturing(self) -> Path:
        """The trace while it is written."""
        return self.directory / CAPTURING

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        with acting_as(self.owner), _errors_of(self.directory):
            fd = open_folder(self.directory)
            try:
                if identity_of(fd) != self.identity:
                    raise CaptureError(
                        f"{self.directory}: another directory has replaced it",
                        f"the trace is {CAPTURING} in the original directory",
                    )
                yield fd
            finally:
                os.close(fd)

    def create(self) -> int:
        """Make the file that the trace is written into; return its descriptor, locked.

        An unfinished trace after a crash is renamed first.
        """
        with self._opened() as fd:
            if _find(fd, CAPTURING):
                self._refuse_when_written(fd, CAPTURING)
                os.rename(CAPTURING, _free_name(fd), src_dir_fd=fd, dst_dir_fd=fd)
            file = os.open(CAPTURING, NEW_FILE, MODE, dir_fd=fd)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file

    def reopen(self, trace: tuple[int, int]) -> int:
        """Open the unfinished trace for a collector that continues it."""
        with self._opened() as fd:
            return _open_own(fd, trace, os.O_RDWR | os.O_APPEND)

    def append(self, trace: tuple[int, int], content: bytes) -> None:
        """Write at the end of the unfinished trace."""
        with self._opened() as fd:
            file = _open_own(fd, trace, os.O_WRONLY | os.O_APPEND)
            with open(file, "wb") as stream:  # noqa: PTH123  a descriptor
                stream.write(content)

    def left_over(self) -> bool:
        """Whether there is an unfinished trace."""
        with self._opened() as fd:
            return _find(fd, CAPTURING)

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse files that publish() cannot replace: directories, a trace that is in use."""
        with self._opened() as fd:
            for name in names:
                if _find(fd, name):
                    self._refuse_when_written(fd, name)

    def publish(self, name: str, trace: tuple[int, int]) -> bool:
        """Rename the finished trace; return whether an older one was renamed.

        `trace` is the identity of what create() has made: nothing else gets the name.
        """
        with self._opened() as fd:
            os.close(_open_own(fd, trace, os.O_RDONLY))
            aside = _exists(fd, name)
            for old in (name, *(TRACE + suffix for suffix in SIDE_SUFFIXES)):
                _put_aside(fd, old, has_trace=aside)
            os.rename(CAPTURING, name, src_dir_fd=fd, dst_dir_fd=fd)
            published = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if (published.st_dev, published.st_ino) == trace:
                marks.mark_capture(published, home_of(self.owner))
            return aside

    def write_stats(self, content: bytes) -> None:
        """Write the stats file; it appears whole or not at all."""
        temporary = f"{STATS}.{os.getpid()}.tmp"
        with self._opened() as fd:
            file = os.open(temporary, NEW_FILE, MODE, dir_fd=fd)
            try:
                with open(file, "wb") as stream:  # noqa: PTH123  a descriptor
                    stream.write(content)
                os.rename(temporary, STATS, src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                os.unlink(temporary, dir_fd=fd)
                raise

    def discard(self) -> None:
        """Remove the unfinished trace."""
        with self._opened() as fd, contextlib.suppress(FileNotFoundError):
            os.unlink(CAPTURING, dir_fd=fd)

    def _refuse_when_written(self, fd: int, name: str) -> None:
        if is_being_written(Path(name), dir_fd=fd):
            raise CaptureError(
                f"{self.directory / name}: another capture is writing it",
                "give another directory with -o",
            )


def open_output(directory: Path, owner: Owner) -> Output:
    """Return the directory for a capture, made when it is not there."""
    directory = directory.absolute()
    with acting_as(owner), _errors_of(directory):
        fd = open_folder(directory, make=True)
        try:
            identity = identity_of(fd)
        finally:
            os.close(fd)
    return Output(directory, owner, identity)


@contextlib.contextmanager
def _errors_of(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = directory / os.fsdecode(error.filename) if error.filename else directory
        raise CaptureError(
            f"{where}: {error.strerror}", "give a directory you can write to with -o"
        ) from error


def _open_own(directory: int, trace: tuple[int, int], flags: int) -> int:
    """Open the unfinished trace; CaptureError when it is not the file that was made."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    fd = os.open(CAPTURING, flags, dir_fd=directory)
    if identity_of(fd) == trace:
        return fd
    os.close(fd)
    raise CaptureError(f"{CAPTURING}: another file has replaced it", "another program writes there")


def _put_aside(directory: int, name: str, *, has_trace: bool) -> None:
    """Rename a file of an older trace."""
    if _exists(directory, name):  # a link too: it is renamed, not followed
        os.rename(name, name + OLD_SUFFIX, src_dir_fd=directory, dst_dir_fd=directory)
    elif has_trace and _exists(directory, name + OLD_SUFFIX):
        os.unlink(name + OLD_SUFFIX, dir_fd=directory)


def _free_name(directory: int) -> str:
    """Return a name for an unfinished trace after a crash."""
    names = (PARTIAL, *(f"{PARTIAL}.{n}" for n in range(1, MAX_PARTIAL)))
    name = next((name for name in names if not _exists(directory, name)), None)
    if name is None:
        raise CaptureError(f"{PARTIAL}: too many of them", "remove the ones that you do not need")
    return name


def identity_of(fd: int) -> tuple[int, int]:
    """Return device and inode of an open file: no other file has them while it is there."""
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _exists(directory: int, name: str) -> bool:
    """Whether anything of that name exists."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _find(directory: int, name: str) -> bool:
    """Whether a regular file of that name exists; CaptureError when it is something else."""
    if not _exists(directory, name):
        return False
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise CaptureError(f"{name}: not a regular file", "remove it, or give -o")
    return True


@dataclass(frozen=True, slots=True)
class Handed(Output):
    """The trace of a session that etraced runs for a user: `fd`, which the user has opened.

    The service opens, makes and renames nothing: names are the matter of the user's own process.
    `directory` is what to call it.
    """

    fd: int = GONE

    def create(self) -> int:
        """Return a descriptor of the file."""
        return os.dup(self.fd)

    def reopen(self, trace: tuple[int, int]) -> int:
        """See Output.reopen."""
        self._need(trace)
        return os.dup(self.fd)

    def append(self, trace: tuple[int, int], content: bytes) -> None:
        """See Output.append: with the rights of the owner, whose quota it is."""
        self._need(trace)
        try:
            with acting_as(self.owner):
                os.lseek(self.fd, 0, os.SEEK_END)
                os.write(self.fd, content)
        except OSError as error:
            raise CaptureError(f"{self.directory}: {error.strerror}") from error

    def left_over(self) -> bool:
        """See Output.left_over: that is for the user's process to see."""
        return False

    def check(self, _names: tuple[str, ...]) -> None:
        """See Output.check."""

    def publish(self, _name: str, _trace: tuple[int, int]) -> bool:
        """See Output.publish."""
        return False

    def write_stats(self, _content: bytes) -> None:
        """See Output.write_stats."""

    def discard(self) -> None:
        """See Output.discard."""

    def _need(self, trace: tuple[int, int]) -> None:
        if self.fd == GONE or identity_of(self.fd) != trace:
            raise CaptureError("the trace is no longer open here")


def handed(fd: int, owner: Owner) -> Handed:
    """Return the output for a descriptor that was checked."""
    return Handed(Path(f"a file of user {owner.uid}"), owner, identity_of(fd), fd)
