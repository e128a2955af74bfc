# SPDX-License-Identifier: Apache-2.0
"""Executions -> the build spec: the calls of compilers and binary tools, in the order of time.

Format: xcalbuild's build spec (docs/exports.md), an array of objects with `directory`,
`arguments` and, where a response file was named, `respfile`. Its debug form has every call. Values
differ from xcalbuild's tracer where that one is wrong: JSON is escaped, arguments are those of the
program, the directory is the one that the program began in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, BinaryIO

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.nfsdb.owned import is_own
from etrace.postprocess.compilations.traced_files import response_files
from etrace.spec.database import NONE
from etrace.spec.path_style import program_name, style_of

#: of xcalbuild's unix-tracer
KNOWN = (
    "ar", "cc", "ld", "gcc", "llvm-gcc", "clang", "c++", "g++", "llvm-g++", "clang++",
    "arm-none-eabi-gcc", "arm-none-eabi-g++",
)  # fmt: skip
#: those that a build on Windows has beside them; windows-tracer has the same
KNOWN_WINDOWS = (
    "cl", "clang-cl", "link", "lld-link", "lib", "llvm-lib", "ml", "ml64",
    "iccarm", "iasmarm", "ilinkarm", "iarchive",
    "armcc", "armclang", "armasm", "armlink", "armar",
    "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-g++", "i686-w64-mingw32-gcc",
    "i686-w64-mingw32-g++",
)  # fmt: skip
#: the system call after every function that starts a program
FUNCTION = "execve"
FUNCTION_WINDOWS = "CreateProcess"
PID_MASK = (1 << 22) - 1
Item = dict[str, Any]


@dataclass(slots=True)
class Written:
    """What a build spec has and lacks; `others` counts the programs that are not known, by name."""

    n_items: int = 0
    others: Counter[str] = field(default_factory=Counter)


class KnownPrograms:
    """The programs whose calls are items, by the name in argv[0]; `*`, `?` and [..] are globs."""

    def __init__(
        self, names: Sequence[str] = KNOWN, on_windows: Sequence[str] = KNOWN_WINDOWS
    ) -> None:
        """`on_windows` are known besides in a build on Windows, where case does not count."""
        self._all = (*names, *on_windows)
        self._globs = [name for name in names if not set("*?[").isdisjoint(name)]
        self._names = frozenset(names)
        self._memo: dict[str, bool] = {}

    def for_windows(self) -> KnownPrograms:
        """Return the same for a build on Windows; its names have no `.exe`."""
        return KnownPrograms([name.lower().removesuffix(".exe") for name in self._all], ())

    def has(self, name: str) -> bool:
        """Return whether a program of this name is known."""
        if name not in self._memo:
            self._memo[name] = name in self._names or any(
                fnmatchcase(name, glob) for glob in self._globs
            )
        return self._memo[name]


class BuildSpec:
    """The build spec of one image."""

    def __init__(self, image: Image, known: KnownPrograms | None = None) -> None:
        """`known` are xcalbuild's programs unless others are given."""
        known = known or KnownPrograms()
        self._image, self._style = image, style_of(image.attributes)
        self._known = known.for_windows() if self._style.is_windows else known
        self._executions = image["executions"]
        self._arguments = image["arguments"]["string"]
        self._files = response_files(image, reads_disk=is_own(image))
        self._captured = response_files(image, reads_disk=False)
        self.written = Written()

    def items(self, *, is_debug: bool = False, expands: bool = False) -> Iterator[Item]:
        """Yield the items in the order of time; with `is_debug` of all programs, with seven keys.

        `expands` puts the words of response files into `arguments`.
        """
        start, index = self._executions["start_ns"], self._executions["index"]
        self.written = Written()
        for row in sorted(range(self._executions.n_rows), key=lambda row: (start[row], row)):
            if index[row] == 0:
                continue
            argv = self._argv(row)
            name = self._name(argv[0]) if argv else ""
            is_known = self._known.has(name)
            if is_known or is_debug:
                self.written.n_items += 1
                yield self._item(row, argv, is_known, is_debug, expands)
            else:
                self.written.others[name] += 1

    def _item(
        self, row: int, argv: Sequence[bytes], is_known: bool, is_debug: bool, expands: bool
    ) -> Item:
        cwd = self._image.string(self._executions["cwd"][row])
        upid = self._executions["upid"][row]
        files = self._files if is_known else self._captured
        if expands:
            argv = files.expand(argv, cwd, upid, keeps_missing=True).argv
        text = None if expands else files.text(argv, cwd, upid)
        plain = {"directory": _shown(cwd), "arguments": list(map(_shown, argv))}
        if not is_debug:
            return plain if text is None else {**plain, "respfile": _shown(text)}
        return {
            "pid": str(upid & PID_MASK),
            "ppid": str(self._parent_pid(row)),
            "function": FUNCTION_WINDOWS if self._style.is_windows else FUNCTION,
            **plain,
            "respfile": _shown(text or b""),
            "isKnown": int(is_known),
        }

    def _name(self, argv0: bytes) -> str:
        if not self._style.is_windows:
            return _shown(argv0.rpartition(b"/")[2])
        return _shown(program_name(self._style.basename(argv0).lower()))

    def _argv(self, row: int) -> list[bytes]:
        span = self._executions.span("argv.start", row)
        return [self._image.string(self._arguments[each]) for each in span]

    # ---- processes ----

    @cached_property
    def _threads(self) -> frozenset[int]:
        """Rows of index 0 of threads: what a thread starts is a child of its process."""
        owners = find_thread_owners(self._image)
        return frozenset(row for row, owner in enumerate(owners) if owner != row)

    def _parent_pid(self, row: int) -> int:
        """Return what getppid() gave the process when it began, 0 when that was not traced."""
        parent, n_steps = self._executions["parent"][row], 0
        while parent != NONE and n_steps <= self._executions.n_rows:
            first = max(0, parent - self._executions["index"][parent])
            if first not in self._threads:
                return int(self._executions["upid"][parent]) & PID_MASK
            parent = self._executions["parent"][first]
            n_steps += 1  # a damaged database may contain a cycle
        return 0


def write(
    stream: BinaryIO, spec: BuildSpec, *, is_debug: bool = False, expands: bool = False
) -> Written:
    """Write the items one after the other, in the layout of xcalbuild's tracer."""
    separator = b"[\n"
    for item in spec.items(is_debug=is_debug, expands=expands):
        stream.write(separator + _text(item))
        separator = b",\n"
    stream.write(b"]\n" if spec.written.n_items else b"[\n]\n")
    return spec.written


def _text(item: Item) -> bytes:
    lines = (f'  "{key}": {_json(value)}' for key, value in item.items())
    # a byte that is no UTF-8 is a half surrogate, which becomes its JSON escape \udcNN
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
