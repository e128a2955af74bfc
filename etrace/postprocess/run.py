# SPDX-License-Identifier: Apache-2.0
"""Phases over an image: runs those whose inputs changed, then writes the image once.

Products lie in the image whose columns they were made of. What else they depend on makes a phase's
*fingerprint*: parts of the configuration and this version of etrace. It is kept in the image's
attribute `phases`; a phase whose tables are there under the same fingerprint is not run again.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from libetrace.depend.configuration import Config
from libetrace.image.file import Image, NewColumn, NewTable

from etrace import __version__
from etrace.nfsdb.store import StringTable, check_rows, rewrite
from etrace.spec.database import PRODUCTS

#: in the order in which they run; each module has a PHASE
PHASES = ("wrappers", "patterns", "linked", "compilations", "graph")
_MODULES = {"compilations": "compilations.phase"}
ATTRIBUTE = "phases"
_SPECS = {table.name: table for table in PRODUCTS}


class Strings(Protocol):
    """What a phase needs of `etrace.nfsdb.store.StringTable`."""

    def number(self, text: bytes) -> int:
        """Return the row of a string, a new one when the image lacks it."""
        ...


def tell_nobody(*_: object) -> None:
    """Take a report and do nothing with it."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a phase gets: the image it reads, where new strings go, and how to show progress.

    `progress(what, done, total)` may be called often; it decides itself what to show. `tell(text)`
    says one thing that the user should know. `is_asking`: compilers that can be trusted are run and
    asked for the directories that they search by themselves.
    """

    image: Image
    strings: Strings
    config: Config
    jobs: int
    progress: Callable[[str, int, int], None]
    tell: Callable[[str], None] = tell_nobody
    is_asking: bool = False


class Phase(Protocol):
    """One pass: tables out of an image."""

    @property
    def name(self) -> str:
        """As in `cas pp --NAME`."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that it makes."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Fields of the configuration and of Work that its tables depend on."""
        ...

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables; nothing on the disk changes."""
        ...

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Say in a few words what was found: `600 links of 3 modules`."""
        ...


@dataclass(frozen=True, slots=True)
class Result:
    """What one phase found; `text` is empty when what the image held is still right."""

    phase: str
    text: str

    @property
    def is_reused(self) -> bool:
        """Whether the phase did not have to run."""
        return not self.text


def product(name: str, *data: Any) -> NewTable:
    """Return a product's table of its columns in the order of the schema; buffers of its dtypes."""
    columns = [
        NewColumn(c.name, c.dtype, content, c.unit, c.meaning)
        for c, content in zip(_SPECS[name].columns, data, strict=True)
    ]
    first = columns[0]
    return NewTable(name, len(first.data) - first.name.endswith("start"), columns)


def load_phase(name: str) -> Phase:
    """Import a phase: what it needs is imported only when it runs."""
    phase: Phase = importlib.import_module(f"etrace.postprocess.{_MODULES.get(name, name)}").PHASE
    return phase


def fingerprint(phase: Phase, work: Work) -> str:
    """Return a number for what the tables of a phase depend on besides the image."""
    inputs = {
        name: getattr(work.config if hasattr(work.config, name) else work, name)
        for name in phase.inputs
    }
    text = json.dumps([phase.name, __version__, inputs], sort_keys=True)
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
    tell: Callable[[str], None] = tell_nobody,
    progress: Callable[[str, int, int], None] = tell_nobody,
    report: Callable[[Result], None] = tell_nobody,
) -> bool:
    """Run phases and write what they made into the image's file; whether anything was written.

    `report` gets the result of each phase when it is known. Until all are done the file is as it
    was; `image` shows the old one afterwards too. EtraceError, OSError.
    """
    check_rows(image)
    strings = StringTable(image)
    work = Work(image, strings, config, jobs, progress, tell, is_asking)
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
