# SPDX-License-Identifier: Apache-2.0
"""A dataset of builds: what is in it, and how a build gets in.

dataset = open_dataset("/srv/fleet")
dataset.add(image, about, redactor)
dataset.readings()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from libetrace.image.file import Image

from etrace.errors import UsageError
from etrace.fleet.objects import Objects
from etrace.fleet.parts import MAX_PROJECT, SINGLE, Part, Reading, key_of, resolve
from etrace.fleet.record import About, Record
from etrace.fleet.redaction import Redactor
from etrace.fleet.schema import VERSION
from etrace.fleet.store import Fill, Folder, Open, Store, is_remote

#: rows of a row group; a reader skips those whose paths are others
N_ROWS = 1 << 17
#: compressed once and read often
LEVEL = 9


@dataclass(frozen=True, slots=True)
class Range:
    """Which builds are read: of projects (all without any) and of days, both ends included."""

    projects: tuple[str, ...] = ()
    since: str = ""
    until: str = ""

    def takes(self, part: Part) -> bool:
        """Whether a part may have such builds."""
        is_of_project = not self.projects or part.project in self.projects
        first, last = part.days
        return is_of_project and self.since <= last and first <= (self.until or "9999")

    def holds(self, part: Part) -> bool:
        """Whether all builds that a part may have are such."""
        first, last = part.days
        return self.takes(part) and self.since <= first and last <= (self.until or "9999")


EVERYTHING = Range()


def open_store(place: str, models: Sequence[Path] = ()) -> Store:
    """Return the store of a directory or URI."""
    if is_remote(place):
        return Objects(place)
    return Folder(Path(place.removeprefix("file://")), tuple(models))


def write_table(table: Any, stream: BinaryIO) -> None:
    """Write the sorted rows of a table as Parquet.

    Only what rows are sorted by has statistics: they are half of a small file.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415  an extra

    first = table.schema.names[0]
    pq.write_table(
        table, stream, compression="zstd", compression_level=LEVEL, row_group_size=N_ROWS,
        write_statistics=[first] if first == "path" else False, store_schema=False,
        dictionary_pagesize_limit=8 << 20,
    )  # fmt: skip


def filling(tables: Callable[[], Iterable[tuple[Any, Any]]]) -> Fill:
    """Return what writes (FleetTable, rows) as the files of a part."""

    def fill(make: Open) -> None:
        for table, rows in tables():
            with make(f"{table.name}.parquet") as stream:
                write_table(rows, stream)

    return fill


class Dataset:
    """The builds of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def readings(self, wanted: Range = EVERYTHING) -> list[Reading]:
        """Return what is read of which parts. EtraceError, OSError."""
        self.store.check()
        forgotten = self.store.forgotten()
        parts = [part for part in self.store.parts() if wanted.takes(part)]
        newer = next((part for part in parts if part.version > VERSION), None)
        if newer is not None:
            raise UsageError(
                f"{self.store.place}: {newer.path} has version {newer.version} of the tables; this "
                f"etrace reads up to {VERSION}", "update etrace",
            )  # fmt: skip
        return resolve(parts, self.builds_of(parts), forgotten)

    def builds_of(self, parts: Iterable[Part]) -> Callable[[Part], Mapping[str, str]]:
        """Return what gives the builds of a part: an index, or its own manifest."""
        folders = {part.of_project for part in parts if not part.is_single}
        known = {path: own for f in folders for path, own in self.store.index(f).items()}

        def builds(part: Part) -> Mapping[str, str]:
            return (
                {part.key: ""}
                if part.is_single
                else (known.get(part.path) or self.store.manifest(part))
            )

        return builds

    def add(self, image: Image, about: About, redactor: Redactor, *, make: bool = False) -> bool:
        """Add a build; False when it is there already. EtraceError, OSError.

        With `make` the dataset is made when there is none.
        """
        self.store.check(make=make)
        key = key_of(about.build)
        if key in self.store.forgotten():
            raise UsageError(
                f"build {about.build} was removed from {self.store.place} for good",
                "a build that was forgotten is never added again; give another --build-id",
            )
        if self.has(key, about.project):
            return False
        part = Part(VERSION, about.project, about.time.date().isoformat(), SINGLE + key)
        return self.store.publish(
            part, {key: about.build}, filling(lambda: Record(image, about, redactor))
        )

    def has(self, key: str, project: str) -> bool:
        """Whether a build of a project is there, alone or in a larger part."""
        parts = [part for part in self.store.parts() if part.is_single or part.project == project]
        builds_of = self.builds_of(parts)
        return any(key in builds_of(part) for part in parts)


def open_dataset(place: str | os.PathLike[str], models: Sequence[Path] = ()) -> Dataset:
    """Open a dataset; nobody may read what is added who may not read `models`."""
    return Dataset(open_store(os.fspath(place), models))


def check_name(what: str, text: str) -> str:
    """Return a name that can be one of a project or build. UsageError."""
    if (
        not text
        or len(quote(text, safe="")) > MAX_PROJECT
        or not text.isprintable()
        or text in (".", "..")
    ):
        raise UsageError(
            f"{what} {text!r}: not a name", f"1 to {MAX_PROJECT} characters that can be printed"
        )
    return text
