# SPDX-License-Identifier: Apache-2.0
"""Compilations: what they compiled, read and made, and which linked modules it went into."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.image.file import Image

from etrace.errors import EtraceError, NothingFoundError
from etrace.query.dependencies import rdeps
from etrace.query.rows.classes import Classes, product
from etrace.query.select.file_names import MAGIC, candidates, led
from etrace.query.select.selection import (
    EVERYTHING,
    Selection,
    filtered_paths,
    selected_executions,
    selected_opens,
)
from etrace.spec.database import NONE


def sources(image: Image, row: int) -> list[bytes]:
    """Return the paths that a row of `compilations` compiled."""
    strings = image["compilation_files"]["string"]
    return [image.string(strings[i]) for i in image["compilations"].span("files.start", row)]


def objects(image: Image, row: int) -> list[bytes]:
    """Return the paths that a row of `compilations` made."""
    paths = image["compilation_objects"]["path"]
    return [image.path_string(paths[i]) for i in image["compilations"].span("objects.start", row)]


def compilations(image: Image, selection: Selection = EVERYTHING) -> list[int]:
    """Return rows of `compilations`, in order of execution.

    Paths select the compilations of a source or object. Filters select by the sources; programs,
    processes and command filters select by the execution.
    """
    table = product(image, "compilations", "compilations")
    rows: Iterable[int] = range(table.n_rows)
    if selection.chooses_executions:
        running = set(selected_executions(image, selection.of_executions()))
        rows = [row for row in rows if table["execution"][row] in running]
    if selection.paths is not None:
        wanted = meant(image, selection.paths)
        rows = [r for r in rows if not wanted.isdisjoint(sources(image, r) + objects(image, r))]
    if selection.filters:
        passed = set(map(image.path_string, filtered_paths(image, selection.filters)))
        rows = [row for row in rows if not passed.isdisjoint(sources(image, row))]
    return list(rows)


def meant(image: Image, names: Iterable[bytes]) -> set[bytes]:
    """Return the compiled files and objects that match a path, the end of a path, or a glob.

    They need not have been opened: on a hit, ccache does not open the source.
    """
    known, found = _all(image), set[bytes]()
    for name in names:
        own = known.intersection(candidates(image, name)) or _led(image, known, name)
        found |= own or set(_ending(known, name))
    return found


def _led(image: Image, known: set[bytes], name: bytes) -> set[bytes]:
    """Return the compiled file that a name leads to through links."""
    row = -1 if MAGIC & set(name) else led(image, name)
    return known.intersection([image.path_string(row)] if row >= 0 else ())


def _all(image: Image) -> set[bytes]:
    rows = range(product(image, "compilations", "compilations").n_rows)
    return {path for row in rows for path in sources(image, row) + objects(image, row)}


def _ending(paths: Iterable[bytes], name: bytes) -> Iterable[bytes]:
    if MAGIC.isdisjoint(name):
        return (path for path in paths if path.endswith(b"/" + name.removeprefix(b"./")))
    return fnmatch.filter(paths, name if name.startswith(b"/") else b"*/" + name)


def compiled(image: Image, selection: Selection = EVERYTHING) -> list[bytes]:
    """Return the distinct paths of compiled files, sorted as bytes.

    When a selected compilation has several files, only the selected ones are returned, if any.
    """
    asked = meant(image, selection.paths or ())
    found: set[bytes] = set()
    for row in compilations(image, selection):
        own = set(sources(image, row))
        found |= own & asked or own
    return sorted(found)


def _unknown(image: Image, text: bytes) -> EtraceError:
    name = os.path.basename(text)  # noqa: PTH119  bytes
    near = [p for p in compiled(image) if os.path.basename(p) == name]  # noqa: PTH119
    hint = (
        f"did you mean {os.fsdecode(near[0])}?" if near else "cas compiled lists what it compiled"
    )
    return NothingFoundError(f"the build did not compile {os.fsdecode(text)}", hint)


def compilation_info_for(image: Image, selection: Selection = EVERYTHING) -> Sequence[int]:
    """Return rows of `compilations` of sources or objects; EtraceError for an unknown file."""
    rows = compilations(image, selection)
    if selection.paths is not None and selection.is_exact:
        known = {path for row in rows for path in sources(image, row) + objects(image, row)}
        for text in selection.paths:
            if known.isdisjoint(meant(image, [text])):
                raise _unknown(image, text)
    return rows


WRITE_ONLY = 1


class Compilers:
    """Finds the compilation that an execution belongs to; each execution is walked from once.

    It is the nearest among the execution and those that started it, up to the first compilation
    (gcc for what its cc1 reads).
    """

    def __init__(self, image: Image) -> None:
        self._compilations = Classes(image).compilations
        self._parent = image["executions"]["parent"]
        self._known: dict[int, int] = {}

    def of(self, row: int) -> int:
        """Return a row of `compilations`, NONE when no compilation started this."""
        walked: list[int] = []
        while row != NONE and row not in self._known and len(walked) <= len(self._parent):
            walked.append(row)
            if row in self._compilations:
                self._known[row] = self._compilations[row]
                break
            row = self._parent[row]
        found = self._known.get(row, NONE)
        self._known.update(dict.fromkeys(walked, found))
        return found


def readers(image: Image, selection: Selection) -> Mapping[int, set[int]]:
    """Return each selected path that was read -> rows of `compilations`, NONE for other readers."""
    opens, compilers = image["opens"], Compilers(image)
    found: dict[int, set[int]] = {}
    for row in selected_opens(image, selection):
        if opens["mode"][row] & 3 != WRITE_ONLY:
            compilation = compilers.of(opens["execution"][row])
            found.setdefault(opens["path"][row], set()).add(compilation)
    return found


def revcomps_map(image: Image, selection: Selection) -> Mapping[bytes, list[bytes]]:
    """Return each selected file that was read -> compiled files, in order of bytes."""
    return {
        image.path_string(path): sorted(
            {source for row in rows - {NONE} for source in sources(image, row)}
        )
        for path, rows in sorted(readers(image, selection).items())
    }


def revcomps_for(image: Image, selection: Selection) -> list[bytes]:
    """Return the compiled files of all selected files together, in order of bytes."""
    return sorted({path for found in revcomps_map(image, selection).values() for path in found})


class ObjectSources:
    """The sources of each object."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._table = product(image, "compilations", "compilations")

    @cached_property
    def by_object(self) -> dict[int, set[int]]:
        """Path row of each object -> string rows of its sources."""
        out: dict[int, set[int]] = {}
        files = self._image["compilation_files"]["string"]
        objects = self._image["compilation_objects"]["path"]
        for row in range(self._table.n_rows):
            own = [files[i] for i in self._table.span("files.start", row)]
            for i in self._table.span("objects.start", row):
                out.setdefault(objects[i], set()).update(own)
        return out

    def sources(self, paths: Sequence[int]) -> list[bytes]:
        """Return the sources of all objects among some paths, sorted as bytes."""
        strings = {s for path in paths for s in self.by_object.get(path, ())}
        return sorted(self._image.string(s) for s in strings)


def compilation_map(
    dependencies: Dependencies, modules: Sequence[int], rules: Rules
) -> dict[str, list[str]]:
    """Return the path of each module -> the sources that were compiled for it."""
    of_objects = ObjectSources(dependencies.image)
    out = {}
    for module in modules:
        found = [*join(dependencies.closures([module], rules), ()), module]
        out[os.fsdecode(dependencies.image.path_string(module))] = [
            os.fsdecode(source) for source in of_objects.sources(found)
        ]
    return out


def reverse_map(
    dependencies: Dependencies, files: Sequence[int], rules: Rules
) -> dict[str, list[str]]:
    """Return each file's path -> paths of the linked modules that depend on it."""
    image = dependencies.image
    out = {}
    for file in files:
        path = image.path_string(file)
        found = rdeps(dependencies, [path], rules)
        out[os.fsdecode(path)] = [os.fsdecode(image.path_string(row)) for row in found]
    return out
