# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json` -> a build in figures: counts, slow commands, what its binaries are made of.

Works on the JSON alone (docs/nfsdb-json.md). What a file is made of is a walk from the file to the
executions that wrote it, to what they read, and on, as long as what was read was itself written by
the build before. The database of `cas pp` answers the same with filters and for every file at once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from etrace.errors import EtraceError

ACCESS = 0x3
READ = 0
ELF_MAGIC = b"\x7fELF"
AR_MAGIC = (b"!<arch>\n", b"!<thin>\n")
ELF_TYPE_OFFSET, ET_REL = 16, 1

# Suffixes by kind of file; the compiler knowledge of the database replaces them there.
_SOURCES = """.c .cc .cpp .cxx .c++ .C .m .mm .s .S .asm .f .f90 .f95 .for .go .rs .java .py .pyx .d
    .ada .adb .hs .ml .swift .zig .cu .y .l .proto .in"""
_HEADERS = ".h .hh .hpp .hxx .h++ .H .inc .inl .ipp .tcc .ads .pxd"
SOURCE_SUFFIXES = frozenset(_SOURCES.split())
HEADER_SUFFIXES = frozenset(_HEADERS.split())
LIBRARY_SUFFIXES = frozenset((".a", ".la", ".o"))
#: a program in one of these is called by people; elsewhere it is a part of another (cc1, collect2)
BIN_DIRECTORIES = frozenset(("bin", "sbin"))

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Execution:
    """One entry of the JSON, what the summary needs of it; times in nanoseconds."""

    key: Key
    start: int
    elapsed: int
    binary: str
    argv: tuple[str, ...]
    status: int | None
    parent: Key
    has_children: bool
    opens: tuple[tuple[str, int, int, int], ...]  #: (path, access, open time, close time)


@dataclass(frozen=True, slots=True)
class Program:
    """All executions of one program."""

    name: str
    count: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Product:
    """A binary that the build made, and how many files of each kind went into it.

    `intermediates` were written by the build itself; the other counts are files that were not.
    Libraries include those that the tools load to run.
    """

    path: str
    n_bytes: int
    kind: str
    sources: int
    headers: int
    libraries: int
    others: int
    intermediates: int
    commands: int
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """One build on one page."""

    elapsed_ns: int
    processes: int
    executions: int
    failed: int
    files: int
    read: int
    written: int
    opens: int
    slowest: tuple[tuple[Execution, tuple[str, ...]], ...]  #: with the command that people know
    programs: tuple[Program, ...]
    products: tuple[Product, ...]


def _execution(raw: dict[str, Any]) -> Execution:
    opens = tuple((o["p"], o["m"] & ACCESS, o["b"], o["e"]) for o in raw["o"])
    return Execution(
        key=(raw["p"], raw["x"]),
        start=raw["s"],
        elapsed=raw["e"],
        binary=raw["b"],
        argv=tuple(raw["v"]),
        status=raw.get("!"),
        parent=(raw["r"]["p"], raw["r"]["x"]),
        has_children=bool(raw["c"]),
        opens=opens,
    )


def executions_of(entries: Iterable[dict[str, Any]]) -> list[Execution]:
    """Turn entries of a `.nfsdb.json` into executions; KeyError or TypeError if foreign."""
    return [_execution(e) for e in entries]


def load(path: Path) -> list[Execution]:
    """Read a `.nfsdb.json`; EtraceError when it is not one."""
    try:
        return executions_of(json.loads(path.read_bytes()))
    except OSError as error:
        raise EtraceError(
            f"{path}: {error.strerror}", "make it first: etrace_parser .nfsdb .nfsdb.json"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EtraceError(
            f"{path}: not a parsed build ({error})",
            "make it again: etrace_parser .nfsdb .nfsdb.json",
        ) from error


class _Graph:
    """Who wrote which path, and when."""

    def __init__(self, executions: Iterable[Execution]) -> None:
        self.by_key: dict[Key, Execution] = {}
        self.writers: defaultdict[str, list[tuple[int, Key]]] = defaultdict(list)
        for execution in executions:
            self.by_key[execution.key] = execution
            for path, access, opened, _closed in execution.opens:
                if access != READ and not path.startswith(("/dev/", "/proc/")):
                    self.writers[path].append((opened, execution.key))

    def closure(self, path: str) -> tuple[set[str], set[Key]]:
        """Return what went into `path`: (files without itself, executions)."""
        files: set[str] = set()
        seen: set[Key] = set()
        # (path, latest time at which a write of it still counts)
        queue: list[tuple[str, float]] = [(path, float("inf"))]
        while queue:
            wanted, before = queue.pop()
            for written, key in self.writers.get(wanted, ()):
                if written > before or key in seen:
                    continue
                seen.add(key)
                for read, access, opened, closed in self.by_key[key].opens:
                    if access == 1 or read.startswith(("/dev/", "/proc/")):
                        continue
                    files.add(read)
                    queue.append((read, max(opened, closed)))
        files.discard(path)
        return files, seen


def _kind(path: str) -> str | None:
    """Return `executable`, `shared object` or `archive` for a file that is one now; else None."""
    try:
        if not Path(path).is_file():  # a FIFO would be waited for
            return None
        with Path(path).open("rb") as stream:
            head = stream.read(ELF_TYPE_OFFSET + 2)
    except (OSError, ValueError):
        return None
    if head.startswith(AR_MAGIC):
        return "archive"
    if not head.startswith(ELF_MAGIC) or len(head) < ELF_TYPE_OFFSET + 2:
        return None
    if head[ELF_TYPE_OFFSET] == ET_REL or head[ELF_TYPE_OFFSET + 1] == ET_REL:
        return None
    return "shared object" if ".so" in PurePosixPath(path).name else "executable"


def _class_of(path: str) -> str:
    suffix = PurePosixPath(path).suffix
    if ".so" in PurePosixPath(path).name or suffix in LIBRARY_SUFFIXES:
        return "libraries"
    if suffix in SOURCE_SUFFIXES:
        return "sources"
    return "headers" if suffix in HEADER_SUFFIXES or "/include/" in path else "others"


def _product(graph: _Graph, path: str, kind: str) -> Product:
    files, keys = graph.closure(path)
    kinds = ("sources", "headers", "libraries", "others", "intermediates")
    counts = dict.fromkeys(kinds, 0)
    for name in files:
        counts["intermediates" if name in graph.writers else _class_of(name)] += 1
    commands = [graph.by_key[k] for k in keys if k[1] > 0]
    tools = sorted({PurePosixPath(e.binary).name for e in commands})
    return Product(
        path, Path(path).stat().st_size, kind, **counts, commands=len(commands), tools=tuple(tools)
    )


def products(executions: list[Execution]) -> list[Product]:
    """Return the binaries that the build wrote and that are still there, largest first."""
    graph = _Graph(executions)
    found = [(path, kind) for path in graph.writers if (kind := _kind(path)) is not None]
    made = [_product(graph, path, kind) for path, kind in found]
    return sorted(made, key=lambda p: (-p.n_bytes, p.path))


def _known_command(execution: Execution, by_key: dict[Key, Execution]) -> tuple[str, ...]:
    """Return the arguments of the nearest command in a bin directory: gcc's for its cc1."""
    at: Execution | None = execution
    while at is not None and at.key[1] > 0:
        if PurePosixPath(at.binary).parent.name in BIN_DIRECTORIES:
            return at.argv
        at = by_key.get(at.parent)
    return execution.argv


def _slowest(
    leaves: Iterable[Execution], executions: Iterable[Execution]
) -> Iterator[tuple[Execution, tuple[str, ...]]]:
    by_key = {e.key: e for e in executions}
    for execution in sorted(leaves, key=lambda e: -e.elapsed)[:10]:
        yield execution, _known_command(execution, by_key)


def _programs(executions: Iterable[Execution]) -> list[Program]:
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for execution in executions:
        groups[PurePosixPath(execution.binary).name].append(execution.elapsed)
    made = [Program(name, len(times), sum(times)) for name, times in groups.items()]
    return sorted(made, key=lambda p: (-p.elapsed_ns, p.name))


def summarise(executions: list[Execution]) -> Summary:
    """Put a build in figures; commands that started others mostly wait and are not called slow."""
    commands = [e for e in executions if e.key[1] > 0]
    leaves = [e for e in commands if not e.has_children]
    read = {path for e in executions for path, access, *_ in e.opens if access != 1}
    written = {path for e in executions for path, access, *_ in e.opens if access != READ}
    end = max((e.start + e.elapsed for e in executions), default=0)
    return Summary(
        elapsed_ns=end,
        processes=len({e.key[0] for e in executions}),
        executions=len(commands),
        failed=sum(bool(e.status) for e in executions),
        files=len(read | written),
        read=len(read),
        written=len(written),
        opens=sum(len(e.opens) for e in executions),
        slowest=tuple(_slowest(leaves, executions)),
        programs=tuple(_programs(leaves)[:10]),
        products=tuple(products(executions)),
    )


def from_json(path: Path) -> Summary:
    """Summary of a `.nfsdb.json`."""
    return summarise(load(path))
