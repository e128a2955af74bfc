# SPDX-License-Identifier: Apache-2.0
"""Parts of a dataset -> those that are read, so that each build counts once.

A part is a directory with one file for each table:

    v1/project=lua/date=2026-11-27/b-KEY    one build; KEY is made of its id
    v1/project=lua/date=2026-11-27/c-HASH   several builds of that day, written by `compact`
    v1/project=lua/date=2026-10/c-HASH      several builds of a month
    v1/project=lua/parts.json               which builds are in which of these, to read it at once

A build may be in several parts of its project: it was added twice at once, or a process that wrote
a larger part has not removed the smaller ones yet. Readers take larger parts first, and leave out
of each part the builds that they have from another one or that are forgotten. So no writer needs a
lock.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from urllib.parse import quote, unquote

SINGLE, SEVERAL = "b-", "c-"
MANIFEST = "part.json"
INDEX = "parts.json"
N_DIGITS = 32
_PATH = re.compile(
    r"v(?P<version>[1-9]\d{0,3})/project=(?P<project>[^/]+)/date=(?P<date>\d{4}-\d\d(?:-\d\d)?)"
    rf"/(?P<name>[bc]-[0-9a-f]{{{N_DIGITS}}}(?:-[0-9a-f]{{8}})?)"
)
#: file systems have no longer names
MAX_PROJECT = 200


def key_of(build: str) -> str:
    """Return what names a build in paths; nobody can read its id from it."""
    return hashlib.sha256(build.encode()).hexdigest()[:N_DIGITS]


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A part of a dataset, by what its path says."""

    version: int
    project: str
    date: str
    name: str

    @property
    def of_project(self) -> str:
        """The path of the directory that has the parts of a project."""
        return f"v{self.version}/project={quote(self.project, safe='')}"

    @property
    def folder(self) -> str:
        """The path of the directory that has the parts of a project and time."""
        return f"{self.of_project}/date={self.date}"

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day that it may have builds of."""
        is_day = len(self.date) == len("2026-11-27")
        return (self.date, self.date) if is_day else (f"{self.date}-01", f"{self.date}-31")

    @property
    def path(self) -> str:
        """The path below the dataset."""
        return f"{self.folder}/{self.name}"

    @property
    def is_single(self) -> bool:
        """Whether it holds one build."""
        return self.name.startswith(SINGLE)

    @property
    def key(self) -> str:
        """The key of its build, if it holds one."""
        return self.name[len(SINGLE) :][:N_DIGITS]


def read_part(path: str) -> Part | None:
    """Return the part of a path below a dataset; None for any other."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return Part(int(found["version"]), unquote(found["project"]), found["date"], found["name"])


@dataclass(frozen=True, slots=True)
class Reading:
    """A part with its builds that are read, and those that are left out (key -> id)."""

    part: Part
    builds: Mapping[str, str]
    left_out: Mapping[str, str]


def resolve(
    parts: Iterable[Part], builds_of: Callable[[Part], Mapping[str, str]], forgotten: Set[str]
) -> list[Reading]:
    """Return what is read of which parts.

    `builds_of` reads the manifest of a part with several builds. The builds of single parts are
    known by their keys alone: their ids are empty.
    """
    known = {part: {part.key: ""} if part.is_single else builds_of(part) for part in set(parts)}
    taken: defaultdict[str, set[str]] = defaultdict(set)  # a project cannot take another's builds
    found = []
    for part in sorted(known, key=lambda part: (-len(known[part]), part.date, part.name)):
        wanted = known[part].keys() - forgotten - taken[part.project]
        if wanted:
            taken[part.project] |= wanted
            left_out = {key: name for key, name in known[part].items() if key not in wanted}
            found.append(Reading(part, {key: known[part][key] for key in wanted}, left_out))
    return found
