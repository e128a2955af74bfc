# SPDX-License-Identifier: Apache-2.0
"""A database -> a build in figures: counts, slow commands, what its binaries are made of.

What a binary is made of is what `cas deps` says, by the same walk and the same kinds. Only the
largest binaries are walked from.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.execution_facts import total_executions
from libetrace.depend.path_opens import WRITES, PathOpens
from libetrace.image.file import Image

from etrace.compilers.regular_file import read_head
from etrace.query.diagnosis import Note, unlisted
from etrace.query.failures import (
    SIGNALLED,
    Failures,
    find_failures,
    last_lines,
    status_text,
)
from etrace.query.rows.commands import Commands, nearest_commands, statuses
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.query.rows.records import Records
from etrace.query.rows.usage import CPU, Usages
from etrace.query.totals import Totals, totals
from etrace.spec.database import NONE

ELF_MAGIC = b"\x7fELF"
AR_MAGIC = (b"!<arch>\n", b"!<thin>\n")
ELF_TYPE_OFFSET, ET_REL = 16, 1
#: a program in one of these is called by people; elsewhere it is a part of another (cc1, collect2)
BIN_DIRECTORIES = frozenset(("bin", "sbin"))
N_SLOWEST = N_PROGRAMS = 10
N_PRODUCTS = 8
N_FAILURES, N_LINES = 3, 10


@dataclass(frozen=True, slots=True)
class Execution:
    """One command that worked long; `argv` is that of the command that people know: gcc's for cc1.

    `cpu_ns` is None where it is not known.
    """

    elapsed: int
    binary: str
    argv: tuple[str, ...]
    cpu_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """All executions of one program."""

    name: str
    count: int
    elapsed_ns: int
    cpu_ns: int | None = None  #: of those whose CPU time is known


@dataclass(frozen=True, slots=True)
class Product:
    """A binary that the build made: how many files of each kind went into it, by what."""

    path: str
    n_bytes: int
    kind: str
    files: Mapping[FileKind, int]
    commands: int
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that made the build fail; `argv` is that of the command that people know."""

    argv: tuple[str, ...]
    ended: str  #: `status 1`, `signal 11 (SIGSEGV)`
    end_ns: int
    lines: tuple[bytes, ...]  #: its last output


@dataclass(frozen=True, slots=True)
class Summary:
    """One build on one page."""

    totals: Totals
    slowest: tuple[Execution, ...]
    programs: tuple[Program, ...]
    products: tuple[Product, ...]  #: the largest of `n_products`
    n_products: int
    failures: tuple[Failure, ...] = ()  #: the first of `n_failures`; the first one is the cause
    n_failures: int = 0
    interrupted_by: str = ""  #: the signal that ended the build
    notes: tuple[Note, ...] = ()  #: what was compiled where the trace does not see it


def _kind(path: str) -> str | None:
    """Return `executable`, `shared object` or `archive` for a file that is one now; else None."""
    head = read_head(os.fsencode(path), ELF_TYPE_OFFSET + 2)
    if head.startswith(AR_MAGIC):
        return "archive"
    if not head.startswith(ELF_MAGIC) or len(head) < ELF_TYPE_OFFSET + 2:
        return None
    if head[ELF_TYPE_OFFSET] == ET_REL or head[ELF_TYPE_OFFSET + 1] == ET_REL:
        return None
    return "shared object" if ".so" in PurePosixPath(path).name else "executable"


class _Build:
    """The executions of one image as the page needs them."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.records = Records(image)
        table = image["executions"]
        self.index, self.binary, self.parent = table["index"], table["binary"], table["parent"]
        self.elapsed = table["elapsed_ns"]
        self.usages = Usages(image)

    def program(self, binary: int) -> str:
        """Return the name of a program; `binary` is a row of `paths`, or NONE."""
        return self.records.path(binary).rpartition("/")[2]

    @cached_property
    def commands(self) -> Commands:
        """The commands of the build."""
        return Commands(self.image)

    @cached_property
    def _nearest(self) -> list[int]:
        return nearest_commands(self.image["executions"])

    def commands_of(self, executions: Iterable[int]) -> Iterator[int]:
        """Yield the execution of the command that each of some belongs to.

        A thread belongs to its process, and a child that runs no program to what forked it.
        """
        for each in executions:
            number = self.commands.of(each)
            row = NONE if number == NONE else self._nearest[self.commands.rows[number]]
            if row != NONE:
                yield row

    def known_command(self, row: int) -> tuple[str, ...]:
        """Return the arguments of the nearest command in a bin directory: gcc's for its cc1.

        A linker that collect2 started is gcc's too.
        """
        at, seen = row, set[int]()
        while at != NONE and self.index[at] > 0 and at not in seen:
            seen.add(at)
            program, above = PurePosixPath(self.records.path(self.binary[at])), self.parent[at]
            is_stage = above != NONE and self.program(self.binary[above]) == "collect2"
            if program.parent.name in BIN_DIRECTORIES and not is_stage:
                return tuple(self.records.argv(at))
            at = above
        return tuple(self.records.argv(row))

    def slowest(self, rows: Iterable[int]) -> Iterator[Execution]:
        """Describe executions."""
        for row in rows:
            binary = self.records.path(self.binary[row])
            cpu_ns = self.usages.value(row, CPU)
            yield Execution(self.elapsed[row], binary, self.known_command(row), cpu_ns)

    def programs(self, by_binary: Iterable[tuple[int, int, int, int, int]]) -> list[Program]:
        """Return the programs, the one that worked longest first, by name without directory."""
        count, elapsed, work, cpu = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        for binary, n, elapsed_ns, work_ns, cpu_ns in by_binary:
            name = self.program(binary)
            count[name] += n
            elapsed[name] += elapsed_ns
            work[name] += work_ns
            cpu[name] += cpu_ns
        is_known = self.usages.is_known
        made = [
            Program(name, n, elapsed[name], cpu[name] if is_known else None)
            for name, n in count.items()
        ]
        return sorted(made, key=lambda p: (-work[p.name], p.name))


def programs(image: Image) -> list[Program]:
    """Return all programs of a build, the one that worked longest first."""
    return _Build(image).programs(total_executions(image, 0).programs)


def products(image: Image, uses: bytes) -> tuple[int, list[Product]]:
    """Return how many binaries the build wrote that are still there, and the largest of them.

    A symbolic link to one of them is not a binary of its own. `uses` has READS and WRITES by path.
    """
    written = {os.fsdecode(image.path_string(row)): row for row in _rows(uses, WRITES)}
    found = []
    for path, row in written.items():
        kind = _kind(path)
        is_link = kind is not None and Path(path).is_symlink()
        if kind is not None and not (is_link and os.path.realpath(path) in written):
            found.append((-_size(path), path, kind, row))
    dependencies, kinds, build = Dependencies(image), FileKinds(image), _Build(image)
    largest = sorted(found)[:N_PRODUCTS]
    return len(found), [_product(build, dependencies, kinds, *each) for each in largest]


def _size(path: str) -> int:
    return Path(path).stat().st_size


def _rows(uses: bytes, access: int) -> list[int]:
    return [row for row, of in enumerate(uses) if of & access]


def _product(
    build: _Build,
    dependencies: Dependencies,
    kinds: FileKinds,
    size: int,
    path: str,
    kind: str,
    row: int,
) -> Product:
    closures = dependencies.closures([row], Rules())
    executions = {each for closure in closures for each in closure.executions}
    kind_of = kinds.among(executions)
    commands = set(build.commands_of(executions))
    return Product(
        path,
        -size,
        kind,
        files=Counter(map(kind_of, join(closures, [row]))),
        commands=len(commands),
        tools=tuple(sorted({build.program(build.binary[each]) for each in commands})),
    )


def _failures(build: _Build, commands: Commands, found: Failures) -> Iterator[Failure]:
    status = statuses(build.image)
    for number in found.commands[:N_FAILURES]:
        row = commands.rows[number]
        yield Failure(
            build.known_command(row),
            status_text(status[row]),
            commands.end_ns(number),
            tuple(last_lines(commands, number, N_LINES)),
        )


def summarise(image: Image) -> Summary:
    """Put a build in figures; slow is what worked long, not what waited for others."""
    build, executions = _Build(image), total_executions(image, N_SLOWEST)
    uses = PathOpens(image).uses()
    n_products, largest = products(image, uses)
    commands = build.commands
    failed = find_failures(commands)
    by = failed.interrupted_by
    return Summary(
        totals=totals(image, executions, uses),
        slowest=tuple(build.slowest(executions.slowest)),
        programs=tuple(build.programs(executions.programs)[:N_PROGRAMS]),
        products=tuple(largest),
        n_products=n_products,
        failures=tuple(_failures(build, commands, failed)),
        n_failures=len(failed.commands),
        interrupted_by=status_text(SIGNALLED + by) if by else "",
        notes=tuple(unlisted(image).notes()),
    )
