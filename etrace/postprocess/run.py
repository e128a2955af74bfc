# SPDX-License-Identifier: Apache-2.0
"""Runs the phases whose inputs changed, then writes the image once.

Products are in the image from whose columns they were made. Their other inputs, parts of the
configuration and the version of etrace, form a phase's *fingerprint*. The image's attribute
`phases` holds it. A phase whose tables exist with the same fingerprint does not run again.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from libetrace.depend.configuration import Config
from libetrace.image.file import Image, NewTable, new_table

from etrace import __version__
from etrace.compilers import own as own_compilers
from etrace.nfsdb.products import StringTable, check_rows, rewrite

#: in the order in which they run
PHASES = ("wrappers", "patterns", "linked", "compilations", "graph", "targets")
#: each module has a PHASE; those that need queries are in a room after them
_MODULES = {
    "compilations": "etrace.postprocess.compilations.phase",
    "targets": "etrace.rules.targets",
}
ATTRIBUTE = "phases"


class Strings(Protocol):
    """The part of `etrace.nfsdb.products.StringTable` that a phase needs."""

    def number(self, text: bytes) -> int:
        """Return the row of a string; add it if the image lacks it."""
        ...


def say_nothing(*_: object) -> None:
    """Ignore a report."""


@dataclass(frozen=True, slots=True)
class Work:
    """The inputs of a phase: the image, the table for new strings, and the progress callback.

    `progress(what, done, total)` may be called often. `say(text)` sends a message to the user.
    `is_asking`: trusted compilers are run to learn the directories that they search by themselves.
    `is_reading_rules`: makefiles of a build that this user captured here are read, in a sandbox;
    `is_shell_allowed`: with the commands of their `$(shell)`.
    """

    image: Image
    strings: Strings
    config: Config
    jobs: int
    progress: Callable[[str, int, int], None]
    say: Callable[[str], None] = say_nothing
    is_asking: bool = False
    is_reading_rules: bool = True
    is_shell_allowed: bool = True


class Phase(Protocol):
    """One phase: makes tables from an image."""

    @property
    def name(self) -> str:
        """As in `cas pp --NAME`."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields of the configuration and of Work on which its tables depend."""
        ...

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables; does not write to the disk."""
        ...

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Return a short summary: `600 links of 3 modules`."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one phase; `text` is empty when the image's tables were still valid."""

    phase: str
    text: str

    @property
    def is_reused(self) -> bool:
        """Whether the phase did not have to run."""
        return not self.text


def product(name: str, *data: Any) -> NewTable:
    """Return a product's table of its columns in the order of the schema; buffers of its dtypes."""
    return new_table(name, data)


def load_phase(name: str) -> Phase:
    """Import a phase only when it runs, with its dependencies."""
    module = _MODULES.get(name, f"etrace.postprocess.{name}")
    phase: Phase = importlib.import_module(module).PHASE
    return phase


def fingerprint(phase: Phase, work: Work) -> str:
    """Return a number for the inputs of a phase besides the image."""
    inputs = {
        name: getattr(work.config if hasattr(work.config, name) else work, name)
        for name in phase.inputs
    }
    own = own_compilers.digest()
    known = [phase.name, __version__, inputs, *([own] if own else [])]
    text = json.dumps(known, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _known(image: Image) -> dict[str, Any]:
    """Return the fingerprints by name of phase."""
    value = image.attributes.get(ATTRIBUTE)
    return dict(value) if isinstance(value, Mapping) else {}


def _is_done(image: Image, phase: Phase, wanted: str) -> bool:
    same = _known(image).get(phase.name) == wanted
    return same and all(table in image.tables for table in phase.tables)


def postprocess(
    image: Image,
    config: Config,
    names: Sequence[str],
    *,
    jobs: int = 1,
    force: bool = False,
    is_asking: bool = False,
    is_reading_rules: bool = True,
    is_shell_allowed: bool = True,
    say: Callable[[str], None] = say_nothing,
    progress: Callable[[str, int, int], None] = say_nothing,
    report: Callable[[Result], None] = say_nothing,
) -> bool:
    """Run phases and write their tables into the image's file; return whether any were written.

    `report` gets the result of each phase when it is known. The file changes only after all phases;
    `image` still shows the old one then. EtraceError, OSError.
    """
    check_rows(image)
    strings = StringTable(image)
    work = Work(
        image, strings, config, jobs, progress, say, is_asking, is_reading_rules, is_shell_allowed
    )
    tables: list[NewTable] = []
    done: dict[str, str] = {}
    for phase in map(load_phase, names):
        wanted = fingerprint(phase, work)
        right = {wanted, fingerprint(phase, replace(work, is_asking=True))}  # more than was wanted
        if not force and any(_is_done(image, phase, each) for each in right):
            report(Result(phase.name, ""))
            continue
        made = phase.run(work)
        report(Result(phase.name, phase.describe(made)))
        tables += made
        done[phase.name] = wanted
    if done:
        rewrite(image, [strings.table(), *tables], {ATTRIBUTE: {**_known(image), **done}})
    return bool(done)
