# SPDX-License-Identifier: Apache-2.0
"""A database -> what is compared of a build, under names that do not depend on where it ran.

The figures are those of `etrace summary` and `critical-path`, headers those of `cas includes`. What
takes long is found for several builds at once, each in a process of its own.
"""

from __future__ import annotations

import os
import posixpath
import signal
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.path_opens import WRITES, PathOpens
from libetrace.image.file import Image

from etrace.query import summary
from etrace.query.changes.matching import ROOT, Numbers, Side
from etrace.query.facts import source_root
from etrace.query.includes import Includes, includes
from etrace.query.linked_modules import Module
from etrace.query.rows.file_kinds import USUAL, FileKind, FileKinds
from etrace.query.rows.targets import Targets
from etrace.query.totals import Totals, totals
from etrace.redaction.build import Redaction
from etrace.report.products import sized_modules
from etrace.spec.database import NONE
from etrace.timing.critical_path import find_critical_path

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

HERE = "."
NS, BYTES, NUMBER = "ns", "bytes", ""
#: executions of all builds from which on processes are worth their start
MANY = 20_000
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Build:
    """One build, with what is compared of it; names are independent of where it ran."""

    def __init__(self, image: Image, root: bytes, numbers: Numbers) -> None:
        self.image = image
        self.kinds = FileKinds(image)
        self._redaction = Redaction(image)
        self.side = Side(image, root, self.kinds.temporaries, numbers, words=self._redaction.words)
        self._base = ROOT + source_root(image).rstrip(b"/")[len(root) :]

    @cached_property
    def path(self) -> tuple[int, array[int]]:
        """Length of the critical path, and the work of each execution; EtraceError if damaged."""
        found = find_critical_path(self.image)
        return found.path_ns, found.work_ns

    @cached_property
    def headers(self) -> Includes | None:
        """What headers cost; None before `cas pp`."""
        is_known = "compilations" in self.image.tables
        return includes(self.image, kinds=self.kinds) if is_known else None

    def find(self) -> tuple[Any, ...]:
        """Find what takes long; return it for `take`."""
        return self.path, self.headers, self.written, dict(self.side.paths)

    def take(self, found: tuple[Any, ...]) -> None:
        """Take what `find` returned in another process."""
        *own, paths = found
        self.__dict__.update(zip(("path", "headers", "written"), own, strict=True))
        self.side.paths.update(paths)

    @cached_property
    def totals(self) -> Totals:
        """The figures of the whole build."""
        return totals(self.image)

    @cached_property
    def times(self) -> dict[str, int | None]:
        """The times of the whole build, by name of the figure."""
        found = self.totals
        return {"wall": found.elapsed_ns, "cpu": found.cpu_ns, "critical-path": self.path[0]}

    @cached_property
    def counts(self) -> dict[str, tuple[str, int | None]]:
        """Units and numbers that are equal in every run of a build, by name of the figure."""
        sizes = (self.kinds.size_of(module.path) for module in self.modules)
        known = [each for each in sizes if each != NONE]
        is_known = "linked" in self.image.tables
        return {
            "size": (BYTES, sum(known) if known or (is_known and not self.modules) else None),
            "dependencies": (NUMBER, len(self._dependencies) if is_known else None),
            "commands": (NUMBER, self.totals.commands),
            "failed": (NUMBER, self.totals.failed),
        }

    @cached_property
    def modules(self) -> list[Module]:
        """The linked modules, the largest first; none before `cas pp`."""
        return sized_modules(self.image, self.kinds) if "linked" in self.image.tables else []

    @cached_property
    def _dependencies(self) -> list[int]:
        """The files that the modules are made of."""
        rows = [module.path for module in self.modules]
        closures = Dependencies(self.image).closures(rows, Rules())
        kind_of = self.kinds.among({each for found in closures for each in found.executions})
        return [path for path in join(closures, rows) if kind_of(path) in USUAL]

    @cached_property
    def written(self) -> dict[bytes, int]:
        """Names and rows of the files that it wrote and that were there in the end.

        When none was there, its database was made elsewhere, and all count.
        """
        mode, uses = self.image["paths"]["mode"], PathOpens(self.image).uses()
        rows = [row for row, of in enumerate(uses) if of & WRITES]
        kept = [row for row in rows if mode[row]] or rows
        return {self.side.paths[row]: row for row in kept}

    def is_product(self, row: int) -> bool:
        """Return whether a written file is a result, not a device or a directory."""
        return self.kinds.of(row) not in (FileKind.DEVICE, FileKind.DIRECTORY)

    def programs(self) -> dict[Hashable, tuple[int, int]]:
        """Return the number of commands and the time of each program."""
        found = summary.programs(self.image)
        if self.times["cpu"] is not None:
            return {p.name: (p.count, p.cpu_ns or 0) for p in found}
        work_ns = Counter[str]()
        for row in self.side.commands:
            name = self.side.program(row).rpartition(b"/")[2]
            work_ns[os.fsdecode(name)] += self.path[1][row]
        return {p.name: (p.count, work_ns[p.name]) for p in found}

    def targets(self) -> dict[Hashable, tuple[int, int]]:
        """Return the number of commands that ran for each target, and their time."""
        targets, n, time_ns = Targets(self.image), Counter[str](), Counter[str]()
        shown = cache(lambda name: self.shown(self.side.normal(name)))
        for row in self.side.commands if targets.are_known else ():
            if names := targets.names(row):
                name = shown(b" ".join(names))
                n[name] += 1
                time_ns[name] += self.path[1][row]
        return {name: (n[name], time_ns[name]) for name in n}

    def name(self, row: int) -> str:
        """Return the name of a command, and its directory below the source root."""
        directory = self._shown(self.side.cwd(row))
        label = self.side.label(row)
        return label if directory in (HERE, "") else f"{label}  in {directory}"

    @cached_property
    def _shown(self) -> Callable[[bytes], str]:
        return cache(self.shown)

    def shown(self, name: bytes) -> str:
        """Return a normal name without secrets, below the source root relative to it."""
        is_below = name == ROOT or name.startswith(ROOT + b"/")
        found = posixpath.relpath(name, self._base) if is_below else name
        return self._redaction.text(os.fsdecode(found))


# ---- several builds at once ----


def prepare(builds: Sequence[Build]) -> None:
    """Find what takes long of several builds at once, if there is enough of it; EtraceError."""
    n = sum(build.image["executions"].n_rows for build in builds)
    if n >= MANY and len(builds) > 1 and len(os.sched_getaffinity(0)) > 1:
        _find_at_once(builds)


def _find_at_once(builds: Sequence[Build]) -> None:
    """Let a child find what takes long of each build but the last; what fails is found again."""
    context = get_context("fork")
    *others, own = builds
    waiting = []
    for build in others:
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_send, args=(build, receiver, sender), daemon=True)
        # a signal between fork and _send() would be lost
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            child.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        sender.close()
        waiting.append((build, receiver, child))
    own.find()
    for build, receiver, child in waiting:
        with suppress(EOFError):
            build.take(receiver.recv())
        receiver.close()
        child.join()


def _send(build: Build, receiver: Connection, sender: Connection) -> None:
    """Send what takes long of a build; an error is that of the parent, which finds it again.

    The parent ends its children when it ends.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    receiver.close()
    with suppress(Exception):
        sender.send(build.find())
