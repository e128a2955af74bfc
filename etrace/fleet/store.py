# SPDX-License-Identifier: Apache-2.0
"""Where a dataset is: a directory of this machine, or an object store (objects.py).

A part appears whole or not at all, and a process that is killed leaves nothing that a reader sees.
In a directory that is one rename of a directory. Everything is opened below the descriptor of the
dataset, and no link of another user is followed (libetrace/core/folders.py).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from libetrace.core.folders import narrow, opened_folder

from etrace.errors import EtraceError, NothingFoundError, UsageError
from etrace.fleet.parts import INDEX, MANIFEST, Part, read_part

HEAD = "fleet.json"
FORMAT = "etrace fleet"
FORGOTTEN = "forgotten"
MAX_MANIFEST_BYTES = 64 << 20
#: makes a file of a part
Open = Callable[[str], "contextlib.AbstractContextManager[BinaryIO]"]
#: writes the files of a part
Fill = Callable[[Open], None]
#: DuckDB would read these in a name as a pattern
PATTERNS = "*?["
_LEFT = re.compile(r"\.[bc]-.*\.(?:tmp|gone)")


#: paths of parts with several builds -> their builds, key -> id; what a part holds never changes
Index = Mapping[str, Mapping[str, str]]


class Store(Protocol):
    """A place of parts. Methods raise OSError when the place is out of reach."""

    place: str

    def check(self, *, make: bool = False) -> None:
        """Raise EtraceError unless there is a dataset, which is made first if `make`."""
        ...

    def parts(self) -> Iterator[Part]:
        """Yield the parts that are whole."""
        ...

    def manifest(self, part: Part) -> Mapping[str, str]:
        """Return the builds of a part, key -> id."""
        ...

    def has(self, part: Part) -> bool:
        """Whether a part is there."""
        ...

    def publish(
        self, part: Part, builds: Mapping[str, str], fill: Fill, models: Sequence[Path] = ()
    ) -> bool:
        """Add a part; False when it is there already.

        Nobody may read its files who may not read all of `models`, where files have rights.
        """
        ...

    def models(self, part: Part) -> list[Path]:
        """Return files that say who may read a part; none where files have no rights."""
        ...

    def remove(self, part: Part) -> None:
        """Remove a part; nothing when it is not there."""
        ...

    def index(self, folder: str) -> Index:
        """Return what the index of a project says of its parts, nothing without one."""
        ...

    def write_index(self, folder: str, index: Index) -> None:
        """Replace the index of a project."""
        ...

    def forgotten(self) -> frozenset[str]:
        """Return the keys of builds that must not be read or added."""
        ...

    def forget(self, key: str) -> None:
        """Add one of these."""
        ...

    def sweep(self, before: float) -> None:
        """Remove what killed processes left before a time (seconds since 1970)."""
        ...

    def file(self, part: Part, table: str) -> str:
        """Return the name of a file of a part, for an engine."""
        ...

    def stream(self, part: Part, table: str) -> Any:
        """Open a file of a part for pyarrow. EtraceError, OSError."""
        ...

    def file_system(self) -> Any:
        """Return pyarrow's file system that reads these names; None for a directory."""
        ...


def is_remote(place: str) -> bool:
    """Return whether a place is that of an object store."""
    return "://" in place and not place.startswith("file://")


def shown_place(place: str) -> str:
    """Return the place of a fleet without parameters and credentials, for messages."""
    return re.sub(r"://[^/]*@", "://", place.partition("?")[0]) if "://" in place else place


def read_manifest(raw: bytes, name: str) -> Mapping[str, str]:
    """Return the builds that a manifest names. EtraceError."""
    try:
        builds = json.loads(raw)["builds"]
        return {str(key): str(build) for key, build in builds.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise EtraceError(
            f"{name}: damaged", "remove the part; then add its builds again"
        ) from error


def manifest_text(builds: Mapping[str, str]) -> bytes:
    """Return the text of a manifest."""
    return json.dumps({"builds": dict(sorted(builds.items()))}, indent=1).encode() + b"\n"


def read_index(raw: bytes) -> Index:
    """Return the parts of an index; nothing of one that is damaged, for manifests say the same."""
    try:
        return {
            str(path): {str(key): str(build) for key, build in builds.items()}
            for path, builds in json.loads(raw)["parts"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def index_text(index: Index) -> bytes:
    """Return the text of an index."""
    return json.dumps({"parts": dict(sorted(index.items()))}).encode() + b"\n"


def head_text() -> bytes:
    """Return what marks a dataset."""
    return json.dumps({"format": FORMAT}).encode() + b"\n"


def check_head(raw: bytes, place: str) -> None:
    """Raise EtraceError unless a text marks a dataset."""
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        if json.loads(raw)["format"] == FORMAT:
            return
    raise EtraceError(f"{place}/{HEAD}: not that of a fleet", "name the directory of a fleet")


def missing(place: str) -> NothingFoundError:
    """Return the error about a place without a dataset."""
    return NothingFoundError(f"{place}: no fleet is there", "etrace fleet add makes one")


class Folder:
    """A dataset in a directory; nobody may read its files who may not read all of `models`."""

    def __init__(self, path: Path, models: tuple[Path, ...] = ()) -> None:
        if set(PATTERNS) & set(os.fspath(path)):
            raise UsageError(f"{path}: a fleet's name has none of {PATTERNS}", "rename it")
        self._path, self._models = path.absolute(), models
        self.place = os.fspath(self._path)

    def check(self, *, make: bool = False) -> None:
        """Raise EtraceError unless there is a dataset, which is made first if `make`."""
        try:
            with opened_folder(self._path, make=make) as folder:
                try:
                    raw = _read(folder, HEAD)
                except FileNotFoundError:
                    if not make:
                        raise missing(self.place) from None
                    self._mark(folder)
                    return
        except (FileNotFoundError, NotADirectoryError):
            raise missing(self.place) from None
        check_head(raw, self.place)

    def _mark(self, folder: int) -> None:
        if any(not name.startswith(".") for name in _names(folder)):
            with contextlib.suppress(FileNotFoundError):
                check_head(_read(folder, HEAD), self.place)  # made meanwhile
                return
            raise UsageError(
                f"{self.place}: other files are there, and it is not a fleet",
                "give a new directory",
            )
        temporary = f".{HEAD}.{os.urandom(4).hex()}"
        with _made(folder, temporary) as stream:
            stream.write(head_text())
        os.rename(temporary, HEAD, src_dir_fd=folder, dst_dir_fd=folder)

    def parts(self) -> Iterator[Part]:
        """Yield the parts that are whole."""
        with opened_folder(self._path) as top:
            for version in _folders(top, "."):
                for project in _folders(top, version):
                    for date in _folders(top, f"{version}/{project}"):
                        for name in _folders(top, f"{version}/{project}/{date}"):
                            part = read_part(f"{version}/{project}/{date}/{name}")
                            if part is not None:
                                yield part

    def manifest(self, part: Part) -> Mapping[str, str]:
        """Return the builds of a part, key -> id."""
        with opened_folder(self._path / part.path) as folder:
            return read_manifest(_read(folder, MANIFEST), f"{self.place}/{part.path}/{MANIFEST}")

    def has(self, part: Part) -> bool:
        """Whether a part is there."""
        return (self._path / part.path).is_dir()

    def publish(
        self, part: Part, builds: Mapping[str, str], fill: Fill, models: Sequence[Path] = ()
    ) -> bool:
        """Add a part; False when it is there already."""
        temporary = f".{part.name}.{os.urandom(4).hex()}.tmp"
        with opened_folder(self._path / part.folder, make=True) as above:
            os.mkdir(temporary, dir_fd=above)
            try:
                below = os.open(
                    temporary, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above
                )
                try:
                    self._fill(below, builds, fill, (*self._models, *models))
                finally:
                    os.close(below)
                os.rename(temporary, part.name, src_dir_fd=above, dst_dir_fd=above)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return False
            finally:
                _remove(above, temporary)
        return True

    def models(self, part: Part) -> list[Path]:
        """Return the manifest: all files of a part have the same rights."""
        return [self._path / part.path / MANIFEST]

    @staticmethod
    def _fill(folder: int, builds: Mapping[str, str], fill: Fill, models: Sequence[Path]) -> None:
        @contextlib.contextmanager
        def make(name: str) -> Iterator[BinaryIO]:
            with _made(folder, name) as stream:
                narrow(stream.fileno(), models)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())

        fill(make)
        with make(MANIFEST) as stream:
            stream.write(manifest_text(builds))

    def remove(self, part: Part) -> None:
        """Remove a part; nothing when it is not there."""
        trash = f".{part.name}.{os.urandom(4).hex()}.gone"
        with (
            contextlib.suppress(FileNotFoundError),
            opened_folder(self._path / part.folder) as above,
        ):
            os.rename(part.name, trash, src_dir_fd=above, dst_dir_fd=above)
            _remove(above, trash)

    def sweep(self, before: float) -> None:
        """Remove what killed processes left before a time (seconds since 1970)."""
        for folder in {part.folder for part in self.parts()}:
            with opened_folder(self._path / folder) as above:
                for name in _names(above):
                    status = os.stat(name, dir_fd=above, follow_symlinks=False)
                    if _LEFT.fullmatch(name) and status.st_mtime < before:
                        _remove(above, name)

    def index(self, folder: str) -> Index:
        """Return what the index of a project says of its parts, nothing without one."""
        try:
            with opened_folder(self._path / folder) as project:
                return read_index(_read(project, INDEX))
        except FileNotFoundError:
            return {}

    def write_index(self, folder: str, index: Index) -> None:
        """Replace the index of a project; its parts may be read by who may read all of them."""
        manifests = [self._path / path / MANIFEST for path in index]
        with opened_folder(self._path / folder) as project:
            temporary = f".{INDEX}.{os.urandom(4).hex()}"
            try:
                with _made(project, temporary) as stream:
                    narrow(stream.fileno(), manifests)
                    stream.write(index_text(index))
                os.rename(temporary, INDEX, src_dir_fd=project, dst_dir_fd=project)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=project)
                raise

    def forgotten(self) -> frozenset[str]:
        """Return the keys of builds that must not be read or added."""
        try:
            with opened_folder(self._path / FORGOTTEN) as folder:
                return frozenset(_names(folder))
        except FileNotFoundError:
            return frozenset()

    def forget(self, key: str) -> None:
        """Add one of these."""
        with opened_folder(self._path / FORGOTTEN, make=True) as folder:
            os.close(os.open(key, os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder))

    def file(self, part: Part, table: str) -> str:
        """Return the name of a file of a part, for an engine. EtraceError for a link or pipe."""
        name = f"{self.place}/{part.path}/{table}.parquet"
        if not stat.S_ISREG(os.lstat(name).st_mode):
            raise _not_regular(name)
        return name

    def stream(self, part: Part, table: str) -> Any:
        """Open a file of a part below the dataset. EtraceError for a link or pipe, OSError."""
        name = f"{table}.parquet"
        with opened_folder(self._path / part.path) as folder:
            try:
                return _opened(folder, name)
            except FileNotFoundError:
                raise _not_regular(f"{self.place}/{part.path}/{name}") from None

    def file_system(self) -> Any:
        """Return None: engines read files themselves."""
        return None


def _not_regular(name: str) -> EtraceError:
    return EtraceError(f"{name}: not a regular file", "remove the part; add its builds again")


def _opened(folder: int, name: str) -> BinaryIO:
    """Open a regular file; FileNotFoundError for any other. OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    stream = open(os.open(name, flags, dir_fd=folder), "rb")  # noqa: PTH123, SIM115  a descriptor
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise FileNotFoundError(errno.ENOENT, "not a regular file", name)
    return stream


def _read(folder: int, name: str) -> bytes:
    """Return the content of a small regular file. OSError."""
    with _opened(folder, name) as stream:
        return stream.read(MAX_MANIFEST_BYTES)


def _names(folder: int) -> list[str]:
    """Return what is in a directory that was opened by `open_folder`, which cannot be read."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(fd)  # noqa: PTH208  a descriptor
    finally:
        os.close(fd)


def _made(folder: int, name: str) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(name, flags, 0o666, dir_fd=folder), "w+b")  # noqa: PTH123  a descriptor


def _folders(top: int, path: str) -> list[str]:
    """Return the sorted names of directories in one below `top`; links are not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        with os.scandir(fd) as entries:
            return sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            )
    finally:
        os.close(fd)


def _remove(above: int, name: str) -> None:
    """Remove a directory with all in it, if it is there."""
    shutil.rmtree(name, ignore_errors=True, dir_fd=above)
