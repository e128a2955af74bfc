# SPDX-License-Identifier: Apache-2.0
"""Rules of a make -> the folders of the project outside of the one where the build began.

A build directory may be beside its sources or apart from them (`../configure && make`, VPATH). The
project is also where makefiles and prerequisites lie.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from os.path import commonpath, isfile
from pathlib import Path

from etrace.query.rows.file_kinds import is_of_system
from etrace.rules.rule import Rules

#: directories of the system, but for sources below /usr/src
_OF_SYSTEM = frozenset(
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "snap", "sys"]
)


def folders_of_sources(rules: Rules, root: str) -> tuple[str, ...]:
    """Return the folders outside of `root` that hold makefiles and prerequisites.

    It is one folder, the common one, unless that is shared by many projects (a home directory).
    """
    found = {folder for folder in _folders(rules) if not f"{folder}/".startswith(f"{root}/")}
    if not found:
        return ()
    common, beside = commonpath(found), above(root)
    if _is_shared(common):
        return tuple(sorted(found))
    # sources and build in one folder, which has no others that are known
    is_beside = above(common) == beside and not _is_shared(beside)
    return (beside,) if is_beside else (common,)


def _folders(rules: Rules) -> Iterator[str]:
    """Yield folders with a makefile, or with a prerequisite that is there."""
    seen = set[str]()
    names = (name for rule in rules.rules.values() for name in rule.needs)
    for path in (*rules.makefiles, *map(rules.path, names)):
        folder = above(path)
        if folder in seen or not isfile(path):  # noqa: PTH113  a text, for there are many
            continue
        seen.add(folder)
        top = folder.split("/", 2)[1]
        if folder != "/" and top not in _OF_SYSTEM and not is_of_system(os.fsencode(f"{folder}/")):
            yield folder


def above(path: str) -> str:
    """Return the directory that a file is in."""
    return path.rpartition("/")[0] or "/"


def _is_shared(folder: str) -> bool:
    """Whether a folder has projects rather than one: it is or has a home, or is for all."""
    shared = (str(Path.home()), tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108  not used
    return any(f"{each}/".startswith(f"{folder.rstrip('/')}/") for each in shared)
