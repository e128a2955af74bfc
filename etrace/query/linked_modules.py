# SPDX-License-Identifier: Apache-2.0
"""Linked modules, and the copies that `install`, `cp`, `strip`, `objcopy`, `ln` or `mv` made.

The trace decides, not the name of a program: a copy was opened for writing by an execution that had
the module open for reading at that moment and is neither a compiler nor a linker; or it is a hard
link of it, or its new name. Copies of copies count.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.query.rows.classes import product
from etrace.query.rows.path_names import EXCHANGED, GONE, LINKED, RENAMED, Names
from etrace.query.select.file_names import find_files
from etrace.query.select.selection import EVERYTHING, Selection, filtered_paths, selected_executions
from etrace.spec.database import ACCESS, EXISTS, NONE

READ, WRITE = 0, 1
#: begin, end, access
Use = tuple[int, int, int]


class Copy(NamedTuple):
    """A file that is a copy of a module (both rows of `paths`), and the execution that made it."""

    module: int
    execution: int


def find_copies(image: Image) -> Mapping[int, Copy]:
    """Return the remaining copies of linked modules, by path; EtraceError before `cas pp`.

    A linked module is not a copy. Names that a rename took away are left out. So are files that
    were gone when the trace was parsed, unless all modules and copies were gone.
    """
    return _Search(image).copies()


class _Search:
    """Follows modules through the executions that read them."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._names = Names(image)
        linked = product(image, "linked", "linked modules")
        self._writes = lru_cache(maxsize=None)(self._writes_of)
        self._modules = dict.fromkeys(linked["path"])
        self._makers = {
            *linked["execution"],
            *product(image, "compilations", "compilations")["execution"],
        }

    def copies(self) -> Mapping[int, Copy]:
        found: dict[int, Copy] = {}
        waiting = [(module, module) for module in self._modules]
        for path, module in waiting:  # grows
            maker = found[path].execution if path in found else NONE
            for copy, execution in self._made_of(path, maker):
                if copy not in found and copy not in self._modules:
                    found[copy] = Copy(module, execution)
                    waiting.append((copy, module))
        modes = self._image["paths"]["mode"]
        were_parsed_here = any(modes[path] & EXISTS for path in (*self._modules, *found))
        return {
            path: found[path]
            for path in sorted(found)
            if (modes[path] & EXISTS or not were_parsed_here) and not self._is_renamed_away(path)
        }

    def _made_of(self, path: int, maker: int) -> Iterator[tuple[int, int]]:
        """Yield copies of a path and the executions that made them; `maker` made the path itself.

        What it writes while it has its own copy open to write and to read is not a copy.
        """
        yield from self._renamed.get(path, ())
        opens, by_path = self._image["opens"], self._image["path_opens"]["open"]
        for at in self._image["paths"].span("opens.start", path):
            row = by_path[at]
            execution = opens["execution"][row]
            if execution in self._makers:
                continue
            for use in self._uses(row):
                if use[2] == READ or (use[2] != WRITE and execution != maker):
                    yield from self._written_while(row, use)

    def _uses(self, row: int) -> list[Use]:
        """Return the uses of an open."""
        opens = self._image["opens"]
        if "open_uses" in self._image.tables:
            table = self._image["open_uses"]
            first = bisect.bisect_left(table["open"], row)
            last = bisect.bisect_right(table["open"], row, lo=first)
            if first < last:
                columns = (table[name][first:last] for name in ("begin_ns", "end_ns", "mode"))
                return list(zip(*columns, strict=True))
        end = max(opens["close_ns"][row], opens["until_ns"][row])
        return [(opens["open_ns"][row], end, opens["mode"][row] & ACCESS)]

    def _written_while(self, row: int, use: Use) -> Iterator[tuple[int, int]]:
        """Yield the files that an execution opened for writing while it read a file."""
        opens = self._image["opens"]
        execution = opens["execution"][row]
        begin, end, _ = use
        writes = self._writes(execution)
        for at in range(bisect.bisect_left(writes, (begin, 0)), len(writes)):
            time_ns, other = writes[at]
            if time_ns > end:
                break
            if other != row:
                yield opens["path"][other], execution

    def _writes_of(self, execution: int) -> list[tuple[int, int]]:
        """Return (time, row) of the uses that write of an execution, in order of time."""
        opens = self._image["opens"]
        return sorted(
            (begin, row)
            for row in self._image["executions"].span("opens.start", execution)
            if opens["mode"][row] & ACCESS != READ and opens["close_ns"][row] > 0
            for begin, _, access in self._uses(row)
            if access != READ
        )

    @cached_property
    def _renamed(self) -> Mapping[int, list[tuple[int, int]]]:
        """Path -> the last names that renames and hard links gave it, and the executions."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for path, changes in self._names.changes.items():
            made = [change for change in changes if change.kind != GONE]
            if made and made[-1].kind in (RENAMED, LINKED, EXCHANGED):
                found[self._names.named(made[-1].name)].append((path, made[-1].execution))
        return found

    def _is_renamed_away(self, path: int) -> bool:
        changes = self._names.changes.get(path, ())
        return bool(changes) and changes[-1].kind == GONE


KIND_NAMES = ("archive", "executable", "shared object", "partial link")


class Module(NamedTuple):
    """A linked module: row of `paths`, index of KIND_NAMES, rows of the executions that made it."""

    path: int
    kind: int
    executions: tuple[int, ...]
    copy_of: int | None = None  #: row of `paths` of the module

    @property
    def kind_name(self) -> str:
        """Say what it is."""
        return KIND_NAMES[self.kind]


def linked_modules(
    image: Image, selection: Selection = EVERYTHING, *, with_copies: bool = False
) -> list[Module]:
    """Return the distinct modules, sorted by path; the last link decides the kind.

    A module is left out when none of its opens matches the filters, or when no selected execution
    made it. With `with_copies`, copies of modules count as modules.
    """
    linked = product(image, "linked", "linked modules")
    makers = set(selected_executions(image, selection.of_executions()))
    found: dict[int, tuple[int, list[int]]] = {}
    for path, kind, execution in zip(
        linked["path"], linked["kind"], linked["execution"], strict=True
    ):
        if execution in makers:
            executions = found.get(path, (0, []))[1]
            found[path] = kind, [*executions, execution]
    modules = {path: Module(path, kind, tuple(by)) for path, (kind, by) in found.items()}
    if with_copies:
        modules |= _copies(image, set(makers))
    wanted = _wanted(image, selection)
    return [modules[path] for path in sorted(modules) if wanted is None or path in wanted]


def _copies(image: Image, makers: set[int]) -> dict[int, Module]:
    kinds = dict(zip(image["linked"]["path"], image["linked"]["kind"], strict=True))
    return {
        path: Module(path, kinds[copy.module], (copy.execution,), copy.module)
        for path, copy in find_copies(image).items()
        if copy.execution in makers
    }


def _wanted(image: Image, selection: Selection) -> set[int] | None:
    wanted = None
    if selection.paths is not None:
        wanted = set(find_files(image, selection.paths, is_exact=selection.is_exact))
    if selection.filters:
        passed = filtered_paths(image, selection.filters)
        wanted = passed if wanted is None else wanted & passed
    return wanted
