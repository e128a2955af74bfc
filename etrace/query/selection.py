# SPDX-License-Identifier: Apache-2.0
"""Filters -> the rows of opens and executions for which they hold.

A test that depends on the path alone is done once for each path, however often it was opened.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Sequence

from libetrace.image import Image

from etrace.query.filters import Filter, FilterError, Part
from etrace.query.kinds import ARCHIVE, EXECUTABLE, SHARED, Kinds
from etrace.spec.database import NONE

Test = Callable[[int], bool]
_ACCESS = {"r": 0, "w": 1, "rw": 2}
_EXISTS, _TYPE, _REGULAR, _DIRECTORY, _LINK = 0x40, 0x3C, 0x20, 0x10, 0x28  # 0emmmmxx
_LINKED_KINDS = {"linked_static": ARCHIVE, "linked_shared": SHARED, "linked_exe": EXECUTABLE}
_SOURCE_TYPES = {"c": 1, "c++": 2, "other": 0}


def _once(test: Test) -> Test:
    """Remember what a test said of each row."""
    known: dict[int, bool] = {}

    def remembered(row: int) -> bool:
        if row not in known:
            known[row] = test(row)
        return known[row]

    return remembered


def _text_test(of: Filter, part: Part, key: str) -> Callable[[bytes], bool]:
    """Return what compares a text as the part's `type` says."""
    wanted = os.fsencode(part.values[key])
    if part.type == "sp":
        return lambda text: wanted in text
    pattern = wanted
    if part.type == "wc":
        pattern = os.fsencode(fnmatch.translate(part.values[key]))
    try:
        match = re.compile(pattern).match
    except re.error as error:
        at = part.places[key] + (error.pos or 0)
        raise FilterError(of.grammar, of.text, at, f"bad regular expression: {error.msg}") from None
    return lambda text: match(text) is not None


class Selection:
    """Evaluates filters over one image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._kinds = Kinds(image)
        self._opens = image["opens"]
        self._executions = image["executions"]
        self._root = os.fsencode(image.attributes.get("source_root", "")).rstrip(b"/") + b"/"

    def opens(self, filters: Iterable[Filter], rows: Iterable[int]) -> list[int]:
        """Return those of `rows` (of `opens`) for which all filters hold, in their order."""
        return self._select(filters, rows, self._open_tests)

    def executions(self, filters: Iterable[Filter], rows: Iterable[int]) -> list[int]:
        """Return those of `rows` (of `executions`) for which all filters hold, in their order."""
        return self._select(filters, rows, self._execution_tests)

    def _select(
        self,
        filters: Iterable[Filter],
        rows: Iterable[int],
        tests_of: Callable[[Filter, Part], list[Test]],
    ) -> list[int]:
        selected = list(rows)
        for of in filters:
            test = self._compile(of, tests_of)
            selected = [row for row in selected if test(row)]
        return selected

    def _compile(self, of: Filter, tests_of: Callable[[Filter, Part], list[Test]]) -> Test:
        alternatives = [
            [(tests_of(of, part), part.is_on("negate")) for part in parts]
            for parts in of.alternatives
        ]

        def holds(row: int) -> bool:
            return any(
                all(all(test(row) for test in tests) != negate for tests, negate in parts)
                for parts in alternatives
            )

        return holds

    # ---- opens ----

    def _open_tests(self, of: Filter, part: Part) -> list[Test]:
        values, path_of, mode = part.values, self._opens["path"], self._opens["mode"]
        tests: list[Test] = []
        if "access" in values:
            access = _ACCESS[values["access"]]
            tests.append(lambda row: min(mode[row] & 3, 2) == access)
        if "exists" in values:
            tests.append(self._exists(values["exists"]))
        if "link" in values:
            link = part.is_on("link")
            tests.append(lambda row: (mode[row] & _TYPE == _LINK) == link)
        for test in self._path_tests(of, part):
            tests.append(lambda row, test=test: test(path_of[row]))  # type: ignore[misc]
        return tests

    def _exists(self, value: str) -> Test:
        mode = self._opens["mode"]
        if value == "0":
            return lambda row: not mode[row] & _EXISTS
        kind = _REGULAR if value == "1" else _DIRECTORY
        return lambda row: bool(mode[row] & _EXISTS) and mode[row] & _TYPE == kind

    def _path_tests(self, of: Filter, part: Part) -> list[Test]:
        """Return tests of rows of `paths`."""
        values, string = part.values, self._image.path_string
        tests: list[Test] = []
        if "path" in values:
            text_test = _text_test(of, part, "path")
            tests.append(_once(lambda path: text_test(string(path))))
        if "class" in values:
            tests.append(_once(self._class_test(values["class"].split("|"))))
        if "global_access" in values:
            access = _ACCESS[values["global_access"]]
            tests.append(_once(lambda path: self._global_access(path) == access))
        if "source_root" in values:
            inside = part.is_on("source_root")
            tests.append(_once(lambda path: string(path).startswith(self._root) == inside))
        if "source_type" in values:
            types, strings = self._kinds.compiled_type, self._image["paths"]["string"]
            wanted = _SOURCE_TYPES[values["source_type"]]
            tests.append(lambda path: types.get(strings[path]) == wanted)
        return tests

    def _global_access(self, path: int) -> int:
        """Return 0 when a path was only read, 1 only written, 2 both."""
        opens, mode = self._image["path_opens"]["open"], self._opens["mode"]
        found = {mode[opens[i]] & 3 for i in self._image["paths"].span("opens.start", path)}
        return min(found.pop(), 2) if len(found) == 1 else 2

    def _class_test(self, classes: Sequence[str]) -> Test:
        wanted = [self._one_class(name) for name in classes]
        return lambda path: any(test(path) for test in wanted)

    def _one_class(self, name: str) -> Test:
        kinds = self._kinds
        if name in ("linked", "compiled", "plain"):
            return lambda path: self._is_of(path, name)
        if name in _LINKED_KINDS:
            linked, kind = kinds.linked_kind, _LINKED_KINDS[name]
            return lambda path: linked.get(path) == kind
        binary, rows = self._executions["binary"], range(self._executions.n_rows)
        if name != "binary":
            rows_of = kinds.compilations if name == "compiler" else kinds.links
            programs = {binary[row] for row in rows_of}
        else:
            programs = {binary[row] for row in rows}
        return programs.__contains__

    def _is_of(self, path: int, name: str) -> bool:
        is_linked = path in self._kinds.linked_kind
        is_compiled = self._image["paths"]["string"][path] in self._kinds.compiled_type
        if name == "plain":
            return not is_linked and not is_compiled
        return is_linked if name == "linked" else is_compiled

    # ---- executions ----

    def _execution_tests(self, of: Filter, part: Part) -> list[Test]:
        tests: list[Test] = []
        for key, text_of in (("bin", self._binary), ("cwd", self._cwd), ("cmd", self.command)):
            if key in part.values:
                tests.append(self._text_of_execution(of, part, key, text_of))
            if f"{key}_source_root" in part.values:
                tests.append(self._below(part.is_on(f"{key}_source_root"), text_of))
        if "class" in part.values:
            wanted = part.values["class"].split("|")
            self._kinds.links, self._kinds.compilations  # noqa: B018  raise when there are none
            tests.append(lambda row: self._kinds.of_execution(row) in wanted)
        if "ppid" in part.values:
            ppid = int(part.values["ppid"])
            tests.append(lambda row: self._parent(row) == ppid)
        return tests

    def _text_of_execution(
        self, of: Filter, part: Part, key: str, text_of: Callable[[int], bytes]
    ) -> Test:
        test = _text_test(of, part, key)
        if key != "cmd":
            return lambda row: test(text_of(row))
        index = self._executions["index"]  # index 0 only shows what its parent was called with
        return lambda row: index[row] > 0 and test(text_of(row))

    def _below(self, inside: bool, text_of: Callable[[int], bytes]) -> Test:
        return lambda row: (text_of(row) + b"/").startswith(self._root) == inside

    def _binary(self, row: int) -> bytes:
        binary = self._executions["binary"][row]
        return b"" if binary == NONE else self._image.path_string(binary)

    def _cwd(self, row: int) -> bytes:
        return self._image.string(self._executions["cwd"][row])

    def command(self, row: int) -> bytes:
        """Return the arguments of an execution joined by blanks, which command patterns match."""
        arguments = self._image["arguments"]["string"]
        span = self._executions.span("argv.start", row)
        return b" ".join(self._image.string(arguments[i]) for i in span)

    def _parent(self, row: int) -> int:
        parent: int = self._executions["parent"][row]
        return parent if parent == NONE else int(self._executions["upid"][parent])
