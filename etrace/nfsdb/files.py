# SPDX-License-Identifier: Apache-2.0
"""A directory or file -> the files of its database.

A database `X` is the trace `X`, `X.json` with `X.env.json`, `X.mounts.json` and, where there were
any response files, `X.rsp.json` beside it, and the image `X.img`. X is `.nfsdb` unless a file is
named. The image remembers each source file by size, time, inode and content
(libetrace.image.freshness), so a stale image is detected and a copied one stays fresh.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from etrace.errors import EtraceError

STEM = ".nfsdb"
#: names of a trace: whole, compressed, in parts of each CPU; the first that is there counts
TRACES = (STEM, f"{STEM}.zst", f"{STEM}_parts")
#: a trace that the kernel module is still writing
CAPTURING = STEM + ".capturing"
#: the environment variable with the default database
DIRECTORY_VARIABLE = "DB_DIR"


class DatabaseFiles(NamedTuple):
    """The paths of the files of one database; the files may be missing."""

    trace: Path
    json: Path
    env: Path
    mounts: Path
    responses: Path
    image: Path

    @property
    def has_trace(self) -> bool:
        """Whether a trace is there, also a compressed one or one in parts."""
        return any(self.trace.with_name(name).exists() for name in TRACES)

    @property
    def has_database(self) -> bool:
        """Whether an image is there, or JSON from which it can be made."""
        return self.image.exists() or self.json.exists()

    @property
    def sources(self) -> dict[str, Path]:
        """The source files of the image, by the name under which it remembers them."""
        return {
            "json": self.json,
            "env": self.env,
            "mounts": self.mounts,
            "responses": self.responses,
        }


def name_files(trace: Path) -> DatabaseFiles:
    """Name the files of the database whose trace is (or was) `trace`."""
    suffixes = ("", ".json", ".env.json", ".mounts.json", ".rsp.json", ".img")
    names = (f"{trace.name}{suffix}" for suffix in suffixes)
    return DatabaseFiles(*(trace.with_name(name) for name in names))


def locate(where: Path | None) -> DatabaseFiles:
    """Name the files of a database: by directory, by image or by JSON file.

    Without `where` it is in the directory $DB_DIR, else in the current one.
    """
    if where is None:
        where = Path(os.environ.get(DIRECTORY_VARIABLE) or ".")
    if where.is_dir():
        return name_files(where / STEM)
    for suffix in (".json", ".img"):
        if where.name.endswith(suffix) and where.name != suffix:
            return name_files(where.with_name(where.name.removesuffix(suffix)))
    if not where.exists():
        raise EtraceError(f"{where}: no such directory", "name the directory of the database")
    raise EtraceError(
        f"{where}: not a directory and not a database",
        "name a directory, a .nfsdb.img or a .nfsdb.json; to make one from a trace: cas parse",
    )
