# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> copies that `install`, `cp`, `strip`, `objcopy`, `ln` or `mv` made of them.

The trace decides, not the name of a program: a copy was opened for writing by an execution that had
the module open for reading at that moment and is neither a compiler nor a linker; or it is a hard
link of it, or its new name. Copies of copies count.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from libetrace.image.file import Image

from etrace.query.classes.kinds import product
from etrace.query.classes.names import GONE, LINKED, RENAMED, Names
from etrace.spec.database import ACCESS, EXISTS, NONE

READ, WRITE = 0, 1


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that is a copy of a module (both rows of `paths`), and the execution that made it."""

    module: int
    execution: int


def find_copies(image: Image) -> Mapping[int, Copy]:
    """Return the remaining copies of linked modules, by path; EtraceError before `cas pp`.

    A linked module is not a copy. Names that a rename took away are left out. So are files that
    were gone when the trace was parsed, unless all were gone.
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
        return {path: found[path] for path in sorted(found) if self._is_left(path)}

    def _made_of(self, path: int, maker: int) -> Iterator[tuple[int, int]]:
        """Yield copies of a path and the executions that made them; `maker` made the path itself.

        When the maker reads its own copy again, the trace has one use from the first open to the
        last close. Files that it wrote in between (for an installer, all later files) are not
        copies.
        """
        yield from self._renamed.get(path, ())
        opens, by_path = self._image["opens"], self._image["path_opens"]["open"]
        for at in self._image["paths"].span("opens.start", path):
            row = by_path[at]
            execution, access = opens["execution"][row], opens["mode"][row] & ACCESS
            is_read = access != WRITE and not (execution == maker and access != READ)
            if is_read and execution not in self._makers:
                yield from self._written_while(row)

    def _written_while(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the files that an execution opened for writing while it read a file."""
        opens = self._image["opens"]
        execution = opens["execution"][row]
        begin, end = opens["open_ns"][row], max(opens["close_ns"][row], opens["until_ns"][row])
        writes = self._writes(execution)
        for at in range(bisect.bisect_left(writes, (begin, 0)), len(writes)):
            time_ns, other = writes[at]
            if time_ns > end:
                break
            if other != row:
                yield opens["path"][other], execution

    def _writes_of(self, execution: int) -> list[tuple[int, int]]:
        """Return (time, row) of the opens for writing of an execution, in order of time."""
        opens = self._image["opens"]
        return sorted(
            (opens["open_ns"][row], row)
            for row in self._image["executions"].span("opens.start", execution)
            if opens["mode"][row] & ACCESS != READ and opens["close_ns"][row] > 0
        )

    @cached_property
    def _renamed(self) -> Mapping[int, list[tuple[int, int]]]:
        """Path -> the last names that renames and hard links gave it, and the executions."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for path, changes in self._names.changes.items():
            made = [change for change in changes if change.kind != GONE]
            if made and made[-1].kind in (RENAMED, LINKED):
                found[self._names.named(made[-1].name)].append((path, made[-1].execution))
        return found

    @cached_property
    def _were_parsed_here(self) -> bool:
        modes = self._image["paths"]["mode"]
        return any(modes[module] & EXISTS for module in self._modules)

    def _is_left(self, path: int) -> bool:
        changes = self._names.changes.get(path, ())
        if changes and changes[-1].kind == GONE:
            return False
        return not self._were_parsed_here or bool(self._image["paths"]["mode"][path] & EXISTS)
