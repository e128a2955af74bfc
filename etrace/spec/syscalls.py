# SPDX-License-Identifier: Apache-2.0
"""syscalls.toml as checked, frozen values: the system calls that a capture looks at."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from etrace.errors import SpecError

#: the tables of numbers, in the order of `numbers`
TABLES = ("x86_64", "i386", "arm64", "arm")
NO_CALL = -1
#: when strace is asked for a call; `import`: only read in logs, `never`: not at all
STRACE = ("always", "mounts", "thread_names", "import", "never")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call; syscalls.toml says what each field means."""

    name: str
    numbers: tuple[int, ...]
    x32: int
    kind: str
    ptrace: str = ""
    kmod: str = ""
    bpf: bool = False
    preload: str = ""
    strings: tuple[int, ...] = ()
    only: str = ""
    strace: str = "always"
    family: str = ""
    replaced: bool = False
    doc: str = ""

    def number(self, table: str) -> int:
        """Return its number in one of TABLES, or NO_CALL."""
        return self.numbers[TABLES.index(table)]

    @property
    def may_be_missing(self) -> bool:
        """Whether kernels of newer architectures have no number for it."""
        return self.replaced or self.number("arm64") == NO_CALL


@dataclass(frozen=True, slots=True)
class Calls:
    """All system calls, in the order of the file."""

    calls: tuple[Call, ...]

    def of_ptrace(self) -> list[Call]:
        """Return the calls that stop for the ptrace backend, in the order of its filter."""
        return [call for call in self.calls if call.ptrace]

    def of_kmod(self) -> list[Call]:
        """Return the calls that the kernel module looks at."""
        return [call for call in self.calls if call.kmod]

    def of_bpf(self) -> list[Call]:
        """Return the calls that the BPF backend looks at."""
        return [call for call in self.calls if call.bpf]

    def of_preload(self) -> list[Call]:
        """Return the calls that the preload library records when they are made by syscall(2)."""
        return [call for call in self.calls if call.preload]

    def kinds(self, calls: Iterable[Call]) -> list[Call]:
        """Return the first call of each kind."""
        return list({call.kind: call for call in reversed(list(calls))}.values())[::-1]

    def of_strace(self, *when: str) -> list[str]:
        """Return the names of the calls that strace is asked for, by the values of `strace`."""
        return [call.name for call in self.calls if call.strace in when]

    def families(self) -> dict[str, tuple[bytes, ...]]:
        """Return the names of the calls of each family."""
        found: dict[str, tuple[bytes, ...]] = {}
        for call in self.calls:
            if call.family:
                found[call.family] = (*found.get(call.family, ()), call.name.encode())
        return found


@cache
def load() -> Calls:
    """Read and check syscalls.toml; SpecError when it is wrong."""
    raw = tomllib.loads(files("etrace.spec").joinpath("syscalls.toml").read_text())
    return parse(raw)


def parse(raw: dict[str, Any]) -> Calls:
    """Check a table as tomllib reads it; SpecError."""
    calls = tuple(_call(row) for row in raw["call"])
    for problem in _problems(calls):
        raise SpecError(f"syscalls.toml: {problem}", "correct the row")
    return Calls(calls)


def _call(row: dict[str, Any]) -> Call:
    numbers = tuple(row["numbers"])
    known = {
        **row,
        "numbers": numbers,
        "x32": row.get("x32", numbers[0]),
        "kind": row.get("kind", row["name"].upper()),
        "strings": tuple(row.get("strings", ())),
    }
    try:
        return Call(**known)
    except TypeError as error:
        raise SpecError(f"syscalls.toml: {row['name']}: {error}", "correct the row") from error


def _problems(calls: tuple[Call, ...]) -> Iterator[str]:
    by_kind: dict[str, Call] = {}
    numbers: dict[tuple[str, int], str] = {}
    for call in calls:
        if len(call.numbers) != len(TABLES):
            yield f"{call.name}: numbers are those of {', '.join(TABLES)}"
        if call.strace not in STRACE:
            yield f"{call.name}: strace is one of {', '.join(STRACE)}"
        for table, number in [*zip(TABLES, call.numbers, strict=True), ("x32", call.x32)]:
            if number != NO_CALL and numbers.setdefault((table, number), call.name) != call.name:
                yield f"{call.name}: {table} has number {number} for {numbers[table, number]}"
        first = by_kind.setdefault(call.kind, call)
        for field in ("ptrace", "kmod", "bpf", "strings"):
            if getattr(first, field) != getattr(call, field):
                yield f"{call.name}: {field} differs from that of {first.name}, of the same kind"
