# SPDX-License-Identifier: Apache-2.0
"""Temporary files of a build, and the names that programs made up for them.

A path is temporary when its first use wrote it and it was gone when the trace was parsed (removed,
or renamed away). The form of a name proves nothing: `statinfo.c` has the form of `stAbCd12`. A name
counts as made up when the path is temporary and the program that created it makes up such names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

from libetrace.depend.path_opens import PathOpens
from libetrace.image.file import Image

from etrace.query.rows.commands import NearestCommands
from etrace.spec.database import NONE

WRITES = 3  # bits of opens.mode
_COMPILERS = (
    r"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|cpp|gfortran|gnatmake|gdc|gm2|collect2|lto-wrapper|lto1|nvcc"
    r"|ld|ld\.\w+)"  # by its plugin
)
_SHELLS = r"(?:sh|dash|bash|ksh|zsh|busybox|sed|g?awk|mawk|cat|cp|mv|config\.status|configure)"


class Naming(NamedTuple):
    """How some programs make up names: all but the first group, `kept`, differs each time."""

    creators: str  #: file names of programs, a version may follow
    names: str


#: mkstemps(3) of libiberty, bfd/bucomm.c, LLVM's createTemporaryFile, Rust's tempfile,
#: ccache's TemporaryFile, coreutils' mktemp, Python's tempfile, autoconf's `$$`, bash's here
#: documents, GNU make's jobserver, CMake's try_compile
NAMINGS = (
    Naming(_COMPILERS, r"(?<![A-Za-z0-9])(cc)[A-Za-z0-9]{6}(?![A-Za-z0-9])"),
    Naming(
        r"(?:.*-)?(?:ar|gcc-ar|ranlib|gcc-ranlib|strip|objcopy|ld|ld\.\w+)",
        r"(?<![^/=,:@])(st)[A-Za-z0-9]{6}(?![A-Za-z0-9])",
    ),
    Naming(r"(?:.*-)?(?:clang|clang\+\+|flang|lld|swift\w*)", r"(-)[0-9a-f]{6,8}(?=[-.]|$)"),
    Naming(r"rustc|cargo", r"(?<![^/=,:@])(rustc)[A-Za-z0-9]{6}(?=/|$)"),
    Naming(r"s?ccache", r"(\.tmp\.|/tmp\.\w+\.)[A-Za-z0-9]{6}(?=\.|$)"),
    Naming(r".*", r"(?<![^/=,:@])(tmp\.)[A-Za-z0-9]{10}(?=/|$)"),
    Naming(r".*", r"(?<![^/=,:@])(tmp)[a-z0-9_]{8}(?![a-z0-9_])"),
    Naming(r"go|compile|link|asm|cgo", r"(?<![^/=,:@])(go-build|go-link-)\d+(?=/|$)"),
    Naming(_SHELLS, r"(?<![^/=,:@])(conf)(?:[A-Za-z0-9]{6}(?=/|$)|\d{2,7}(?!\d))"),
    Naming(_SHELLS, r"(?<![^/=,:@])(sh-\w+\.)[A-Za-z0-9]{6}$"),
    Naming(_SHELLS, r"(?<=/)(cg)[A-Za-z0-9]{6}(?=/|$)"),  # config.guess
    Naming(r"g?make", r"(?<![^/=,:@])(GMfifo)\d+$"),
    Naming(r"g?make", r"(?<=/)(Gm)[A-Za-z0-9]{6}$"),
    Naming(r".*", r"(?<![A-Za-z0-9])(cmTC_)[0-9a-f]{5}(?![A-Za-z0-9])"),
    Naming(r".*", r"(?<![^/=,:@])(TryCompile-)[A-Za-z0-9]{6}(?=/|$)"),
    Naming(r".*", r"(?<![^/=,:@])(#)\d+$"),  # O_TMPFILE: the kernel shows an inode's number
    Naming(r"python[\d.]*", r"(?<=/tmp/)()[a-z0-9_]{8}$"),
)
_VERSION = r"(?:-[\d.]+)?"


@cache  # seldom needed, slow to compile
def _names(naming: Naming) -> re.Pattern[bytes]:
    return re.compile(naming.names.encode())


@cache
def _names_of(program: bytes) -> list[re.Pattern[bytes]]:
    """Return the names that a program makes up."""
    return [
        _names(each)
        for each in NAMINGS
        if re.fullmatch((each.creators + _VERSION).encode(), program)
    ]


class Temporaries:
    """The temporary files of one image."""

    def __init__(self, image: Image, opens: PathOpens | None = None) -> None:
        self._image = image
        self._given = opens
        self._creators: dict[int, int | None] = {}
        self._modes: dict[int, int] = {}
        executions = image["executions"]
        self._nearest = NearestCommands(executions["binary"], executions["parent"])

    @cached_property
    def _opens(self) -> PathOpens:
        return self._given or PathOpens(self._image)

    def is_temporary(self, path: int) -> bool:
        """Return whether the build created a path that did not exist when the trace was parsed."""
        return self._creator(path) is not None

    def mode_of(self, path: int) -> int:
        """Return the mode of a path by lstat(2) when the trace was parsed, 0 when it was gone.

        When a path was opened only by other names (`./config.status`), its opens have the mode.
        """
        if path not in self._modes:
            known, mode = int(self._image["paths"]["mode"][path]), self._image["opens"]["mode"]
            uses = (int(mode[row]) & ~WRITES for row in self._uses_by_other_names(path))
            self._modes[path] = known or next(uses, 0)
        return self._modes[path]

    def size_of(self, path: int) -> int:
        """Return the size of a file at the same time, NONE when it was gone."""
        paths, size = self._image["paths"], self._image["opens"]["size"]
        if paths["mode"][path]:
            return int(paths["size"][path])
        return next((int(size[row]) for row in self._uses_by_other_names(path)), NONE)

    def _uses_by_other_names(self, path: int) -> Iterator[int]:
        """Yield the opens of a file that was there by other names, but links and O_TMPFILE."""
        image, opens = self._image, self._image["opens"]
        name = os.path.basename(image.path_string(path))  # noqa: PTH119  bytes
        for row in self._opens.existing(path):
            original = image.string(opens["original"][row])
            if os.path.basename(original) == name:  # noqa: PTH119
                yield row

    def _creator(self, path: int) -> int | None:
        """Return the execution that created a path that is gone; None for all others."""
        if path not in self._creators:
            self._creators[path] = self._find_creator(path)
        return self._creators[path]

    def _find_creator(self, path: int) -> int | None:
        opens = self._image["opens"]
        if self.mode_of(path):
            return None
        first = self._opens.first(path)
        if first < 0 or not opens["mode"][first] & WRITES:
            return None
        return int(opens["execution"][first])

    def _program(self, execution: int) -> bytes:
        """Return the program's name; for a child before its first exec, its parent's."""
        table = self._image["executions"]
        command = self._nearest.of(execution)
        if command == NONE:
            return b""
        return os.path.basename(self._image.path_string(table["binary"][command]))  # noqa: PTH119

    @cached_property
    def made_up(self) -> dict[bytes, bytes]:
        """Made-up parts of names of temporary files -> the names with `*` in their place."""
        return dict(
            pair
            for path in range(self._image["paths"].n_rows)
            if self.is_temporary(path)
            for pair in self.parts_of(path)
        )

    def parts_of(self, path: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the made-up parts of a temporary file's name."""
        creator = self._creator(path)
        if creator is None:
            return
        program, name = self._program(creator), self._image.path_string(path)
        for names in _names_of(program):
            yield from ((found[0], found[1] + b"*") for found in names.finditer(name))

    def starred(self, text: bytes) -> bytes:
        """Return a name or an argument with `*` for its made-up parts."""
        if not self.made_up:
            return text
        for naming in NAMINGS:
            text = _names(naming).sub(self._star, text)
        return text

    def _star(self, found: re.Match[bytes]) -> bytes:
        return self.made_up.get(found[0], found[0])
