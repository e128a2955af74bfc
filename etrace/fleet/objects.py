# SPDX-License-Identifier: Apache-2.0
"""A dataset in an object store, through pyarrow's file systems: s3://BUCKET/PATH and the like.

There is no rename. A part is there once it has its manifest, which is written last and removed
first. Each writer has a name of its own, so what two of them write at once is never mixed: both
parts are there then, and readers take one (parts.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from etrace.errors import UsageError
from etrace.fleet.parts import INDEX, MANIFEST, Part, read_part
from etrace.fleet.store import (
    FORGOTTEN,
    HEAD,
    Fill,
    Index,
    check_head,
    head_text,
    index_text,
    manifest_text,
    missing,
    read_index,
    read_manifest,
    shown_place,
)
from etrace.query.rows.frames import load_pyarrow


class Objects:
    """A dataset below a URI that pyarrow knows."""

    def __init__(self, uri: str) -> None:
        pa = load_pyarrow()
        from pyarrow import fs  # noqa: PLC0415  an extra

        self.place = shown_place(uri)
        try:
            self._fs, path = fs.FileSystem.from_uri(uri)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(
                f"{self.place}: {error}", "s3://BUCKET/PATH, or a directory"
            ) from error
        self._selector, self._type = fs.FileSelector, fs.FileType
        self._top = path.rstrip("/")

    def _at(self, path: str) -> str:
        return f"{self._top}/{path}"

    def _put(self, path: str, text: bytes) -> None:
        with self._fs.open_output_stream(self._at(path)) as stream:
            stream.write(text)

    def _infos(self, below: str) -> list[Any]:
        """Return what the store says of the files below a path."""
        where = self._at(below)
        found = self._fs.get_file_info(self._selector(where, allow_not_found=True, recursive=True))
        return [info for info in found if info.type == self._type.File]

    def _files(self, below: str) -> Iterator[str]:
        """Yield the paths of files below one."""
        for info in self._infos(below):
            yield info.path[len(self._top) + 1 :]

    def check(self, *, make: bool = False) -> None:
        """Raise EtraceError unless there is a dataset, which is made first if `make`."""
        try:
            with self._fs.open_input_stream(self._at(HEAD)) as stream:
                check_head(stream.read(), self.place)
        except FileNotFoundError:
            if not make:
                raise missing(self.place) from None
            self._put(HEAD, head_text())

    def parts(self) -> Iterator[Part]:
        """Yield the parts that are whole."""
        for path in self._files(""):
            folder, _, name = path.rpartition("/")
            part = read_part(folder) if name == MANIFEST else None
            if part is not None:
                yield part

    def manifest(self, part: Part) -> Mapping[str, str]:
        """Return the builds of a part, key -> id."""
        path = f"{part.path}/{MANIFEST}"
        with self._fs.open_input_stream(self._at(path)) as stream:
            return read_manifest(stream.read(), f"{self.place}/{path}")

    def has(self, part: Part) -> bool:
        """Whether a part is there, by any writer."""
        begin = f"{part.path}-" if part.is_single else f"{part.path}/"
        paths = (path for path in self._files(part.folder) if path.endswith(f"/{MANIFEST}"))
        return any(path.startswith((begin, f"{part.path}/")) for path in paths)

    def publish(
        self, part: Part, builds: Mapping[str, str], fill: Fill, models: Sequence[Path] = ()
    ) -> bool:
        """Add a part; False when it is there already."""
        del models  # a bucket has its own rights
        if self.has(part):
            return False
        own = f"{part.path}-{os.urandom(4).hex()}"

        @contextlib.contextmanager
        def make(name: str) -> Iterator[BinaryIO]:
            with self._fs.open_output_stream(self._at(f"{own}/{name}")) as stream:
                yield cast("BinaryIO", stream)

        fill(make)
        self._put(f"{own}/{MANIFEST}", manifest_text(builds))
        return True

    def models(self, part: Part) -> list[Path]:
        """Return nothing: a bucket has its own rights."""
        del part
        return []

    def remove(self, part: Part) -> None:
        """Remove a part; nothing when it is not there."""
        with contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(self._at(f"{part.path}/{MANIFEST}"))
        for path in list(self._files(part.path)):
            self._fs.delete_file(self._at(path))

    def sweep(self, before: float) -> None:
        """Remove what killed processes left before a time (seconds since 1970)."""
        files = self._infos("")
        whole = {info.path.rpartition("/")[0] for info in files if info.base_name == MANIFEST}
        for info in files:
            folder = info.path.rpartition("/")[0]
            if folder in whole or read_part(folder[len(self._top) + 1 :]) is None:
                continue
            if info.mtime is not None and info.mtime.timestamp() < before:
                self._fs.delete_file(info.path)

    def index(self, folder: str) -> Index:
        """Return what the index of a project says of its parts, nothing without one."""
        try:
            with self._fs.open_input_stream(self._at(f"{folder}/{INDEX}")) as stream:
                return read_index(stream.read())
        except FileNotFoundError:
            return {}

    def write_index(self, folder: str, index: Index) -> None:
        """Replace the index of a project."""
        self._put(f"{folder}/{INDEX}", index_text(index))

    def forgotten(self) -> frozenset[str]:
        """Return the keys of builds that must not be read or added."""
        return frozenset(path.rpartition("/")[2] for path in self._files(FORGOTTEN))

    def forget(self, key: str) -> None:
        """Add one of these."""
        self._put(f"{FORGOTTEN}/{key}", b"\n")

    def file(self, part: Part, table: str) -> str:
        """Return the name of a file of a part, for an engine."""
        return self._at(f"{part.path}/{table}.parquet")

    def stream(self, part: Part, table: str) -> Any:
        """Open a file of a part."""
        return self._fs.open_input_file(self.file(part, table))

    def file_system(self) -> Any:
        """Return pyarrow's file system that reads these names."""
        return self._fs
