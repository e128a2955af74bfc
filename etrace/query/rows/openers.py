# SPDX-License-Identifier: Apache-2.0
"""Which programs opened a file: it decides where a name says too little.

`a.def` is a list of macros to cc1, a file of exports to ld and a part of a package to pdflatex.
Node loads its own modules in its main thread and reads what it bundles in others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from libetrace.image.file import Image

from etrace.spec.database import ACCESS, NONE

_WRITE_ONLY = 1  # of opens.mode & ACCESS
_TEX = r"\w*tex(-dev)?|xdvipdfmx|tectonic|context|bibtex8|biber"
_LINKER = r"ld|ld\.\w+|lld(-link)?|gold|mold|wild|link|collect2|dlltool|windres"
#: suffix -> programs whose opening of such a file shows its kind; the first that match count
_SHOWN = {
    ".def": ((_TEX, "source"), (_LINKER, "config")),
    ".cfg": ((_TEX, "source"),),
    ".clo": ((_TEX, "source"),),
    ".fd": ((_TEX, "source"),),
    ".ldf": ((_TEX, "source"),),
    # of Fortran, but Kbuild lists the objects of a kernel module in such a file
    ".mod": ((r"[gmn]?awk|modpost|(ba|da)?sh|ld(\.\w+)?", "config"), (r"m2c|gm2|cc1gm2", "source")),
    ".go": ((r"guil[de].*", "object"),),
    ".pro": ((r"swipl|gplc|yap|sicstus", "source"),),
    ".res": ((r"rescript|bsc|rewatch", "source"),),
    ".x": ((r"rpcgen", "source"),),
}
_PATTERNS = {
    suffix: tuple(
        (re.compile(rf"([\w.-]+-)?({programs})(-[\d.]+)?".encode()), kind)
        for programs, kind in shown
    )
    for suffix, shown in _SHOWN.items()
}
_NODE = re.compile(rb"node(js)?|electron|bun")
_PYTHON = re.compile(rb"(python|pypy)[\d.]*")
_RUBY = re.compile(rb"[jt]?ruby[\d.]*|rake|bundle")
_PACKAGE = re.compile(rb"(.*/(?:node_modules|share/nodejs|lib/nodejs)/(?:@[^/]+/)?[^/]+)/")
_OF_NODE = re.compile(rb"(?!.*\.d\.[cm]?ts$).*\.([cm]?js|json|node)")
_OF_PYTHON = re.compile(rb".*/(site|dist)-packages/.*\.(py|pyc)")
_OF_RUBY = re.compile(rb".*/gems/[^/]+-\d[^/]*/.*\.rb")


def is_node_module(name: bytes) -> bool:
    """Return whether a path is a module of an installed package that node could load."""
    return _PACKAGE.match(name) is not None and _OF_NODE.fullmatch(name) is not None


class Openers:
    """The programs that opened the paths of one image."""

    def __init__(self, image: Image) -> None:
        self._image, self._paths = image, image["paths"]
        self._by_path = image["path_opens"]["open"]
        self._binary, self._parent = image["executions"]["binary"], image["executions"]["parent"]
        self._mode, self._execution = image["opens"]["mode"], image["opens"]["execution"]
        self._names: dict[int, bytes] = {}
        self._packages: dict[bytes, bool] = {}
        self._first: frozenset[bytes] | None = None

    def shown_kind(self, path: int, name: bytes) -> str | None:
        """Return the kind of a file of an ambiguous suffix as its programs show it, else None."""
        dot = name.rfind(b".")
        for pattern, kind in _PATTERNS.get(name[dot:].decode("latin-1"), ()) if dot >= 0 else ():
            if any(pattern.fullmatch(self._program(row)) for row in self._rows(path)):
                return kind
        return None

    def is_loaded_module(self, path: int, name: bytes, *, is_made: bool) -> bool:
        """Return whether an interpreter loaded an installed module to run it, and nothing else."""
        if (package := _PACKAGE.match(name)) and _OF_NODE.fullmatch(name):
            return self._is_loaded_by_node(path, package[1])
        for modules, program in ((_OF_PYTHON, _PYTHON), (_OF_RUBY, _RUBY)):
            if not is_made and modules.fullmatch(name):
                rows = list(self._reads(path))
                return bool(rows) and all(program.fullmatch(self._program(row)) for row in rows)
        return False

    def _is_loaded_by_node(self, path: int, package: bytes) -> bool:
        """Return whether node loaded a file: require() opens it in the main thread.

        An `import` reads in another thread, as bundlers do, but never package.json.
        """
        in_main, elsewhere, others = self._readers(path)
        if others or not (in_main or elsewhere):
            return False
        if in_main and not (elsewhere and self._is_bundled(package)):
            return True
        return package in self._started() and not self._is_bundled(package)

    def _is_bundled(self, package: bytes) -> bool:
        """Return whether something else than node's own loader read a package's package.json."""
        if package not in self._packages:
            path = self._image.find_path(package + b"/package.json")
            _, elsewhere, others = self._readers(path) if path >= 0 else (False, False, False)
            self._packages[package] = elsewhere or others
        return self._packages[package]

    def _readers(self, path: int) -> tuple[bool, bool, bool]:
        """Return whether main threads of node, other threads of it and other programs read it."""
        in_main = elsewhere = others = False
        for row in self._reads(path):
            if not _NODE.fullmatch(self._program(row)):
                others = True
            elif self._binary[self._execution[row]] == NONE:
                elsewhere = True
            else:
                in_main = True
        return in_main, elsewhere, others

    def _started(self) -> frozenset[bytes]:
        """Return the packages that processes of node began with: a bundler's own."""
        if self._first is None:
            executions = self._image["executions"]
            found = set[bytes]()
            for row, binary in enumerate(self._binary):
                if binary != NONE and _NODE.fullmatch(self._name(binary)):
                    arguments = self._image["arguments"]["string"]
                    for at in executions.span("argv.start", row)[1:3]:
                        found.update(self._packages_of(self._image.string(arguments[at])))
            self._first = frozenset(found)
        return self._first

    def _packages_of(self, word: bytes) -> Iterator[bytes]:
        """Yield the packages that a script may be of: .bin/webpack is a link into one."""
        if match := _PACKAGE.match(word):
            folder, _, name = match[1].rpartition(b"/")
            yield match[1] if name != b".bin" else folder + b"/" + word.rpartition(b"/")[2]

    def _rows(self, path: int) -> Iterator[int]:
        """Yield the rows of the opens of a path."""
        return map(self._by_path.__getitem__, self._paths.span("opens.start", path))

    def _reads(self, path: int) -> Iterator[int]:
        for row in self._rows(path):
            if self._mode[row] & ACCESS != _WRITE_ONLY:
                yield row

    def _program(self, row: int) -> bytes:
        """Return the name of the program of an open: a thread's is that of its process."""
        at, n_passed = self._execution[row], 0
        while self._binary[at] == NONE and self._parent[at] != NONE and n_passed < 100:
            at, n_passed = self._parent[at], n_passed + 1
        return b"" if self._binary[at] == NONE else self._name(self._binary[at])

    def _name(self, binary: int) -> bytes:
        if binary not in self._names:
            self._names[binary] = self._image.path_string(binary).rpartition(b"/")[2]
        return self._names[binary]
