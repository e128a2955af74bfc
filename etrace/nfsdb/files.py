# SPDX-License-Identifier: Apache-2.0
"""A place -> the files of the database there.

A database `X` is the trace `X`, `X.json` with `X.env.json`, `X.mounts.json` and, where there were
any response files, `X.rsp.json` beside it, and the image `X.img`. X is `.nfsdb` unless a file is
named. The image remembers each file that it was made of by size, time, inode and content
(libetrace.image.freshness), so that a stale one is noticed and a copied one is not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from etrace.errors import EtraceError

STEM = ".nfsdb"
#: where to look for the database when the command does not say
DIRECTORY_VARIABLE = "DB_DIR"


class DatabaseFiles(NamedTuple):
    """Where the files of one database are, there or not."""

    trace: Path
    json: Path
    env: Path
    mounts: Path
    responses: Path
    image: Path

    @property
    def sources(self) -> dict[str, Path]:
        """What the image is made of, by the name under which it is remembered."""
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
