# SPDX-License-Identifier: Apache-2.0
"""A compilation -> its search path for headers, by its options, its environment and its compiler.

Order and what is left out: GCC's manual, "Directory Options", and gcc/incpath.cc. Quote directories
first, then -I and CPATH, -isystem and C_INCLUDE_PATH, the compiler's own, -idirafter. A directory
that is also a system directory is searched as one; repetitions are ignored.

The compiler's own come from a stage of gcc in the trace. Nothing is run: where `cc1` lies says
where its own headers are, `-imultiarch` and `-imultilib` that the driver gave it say the rest. They
are in the order of gcc/cppdefault.cc, for compilers of the machine itself; who asks drops those
that never existed. A cross compiler, one that opened nothing in /usr/include, and one with a
sysroot are not guessed at. clang's -cc1 has them on its command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.compilers.invocation import Invocation
from etrace.postprocess.compilations.traced_files import TracedFiles

TEMPORARY_VARIABLE = b"TMPDIR"


class Environment:
    """The variables of all processes of one image."""

    def __init__(self, image: Image, files: TracedFiles) -> None:
        wanted: dict[int, tuple[bytes, bytes]] = {}
        for name in (*VARIABLES, TEMPORARY_VARIABLE):
            for row in files.strings_with(name + b"="):
                wanted[row] = (name, image.string(row)[len(name) + 1 :])
        self._of: dict[int, dict[bytes, bytes]] = {}
        if not wanted:
            return
        table = image["environment"]
        for upid, string in zip(table["upid"], table["string"], strict=True):
            if string in wanted:
                name, value = wanted[string]
                self._of.setdefault(upid, {})[name] = value

    def of(self, upid: int) -> dict[bytes, bytes]:
        """Return the variables of a process by name."""
        return self._of.get(upid, {})

    def temporary_directories(self) -> set[bytes]:
        """Return every value of TMPDIR."""
        values = (each.get(TEMPORARY_VARIABLE, b"") for each in self._of.values())
        return {value.rstrip(b"/") for value in values} - {b""}


#: <prefix>/<lib>/gcc/<triple>/<version>/cc1
PLACE = re.compile(
    rb"(?P<prefix>/.*)/(?:lib|lib64|libexec)/gcc/(?P<triple>[^/]+)/(?P<version>[^/]+)/cc1(?:plus)?"
)
HEADERS = b"/usr/include/"
LOCAL = b"/usr/local/include"
CXX = "c++"


class FrontendRun(NamedTuple):
    """One run of cc1 or cc1plus: `opened` are the paths that it opened."""

    binary: bytes
    argv: Sequence[bytes]
    opened: Sequence[bytes]


def derive(stage: FrontendRun, language: str, *, has_cxx: bool = True) -> tuple[bytes, ...]:
    """Return the directories that may exist, in the order of the search; none when unknown.

    `has_cxx` is False with -nostdinc++.
    """
    place = PLACE.fullmatch(stage.binary)
    if place is None or not any(path.startswith(HEADERS) for path in stage.opened):
        return ()
    prefix, triple, version = place["prefix"], place["triple"], place["version"]
    multiarch, multilib = _value(stage.argv, b"-imultiarch"), _value(stage.argv, b"-imultilib")
    own = [b"%s/%s/gcc/%s/%s" % (prefix, lib, triple, version) for lib in (b"lib", b"lib64")]
    cxx: list[bytes] = []
    if language in (CXX, "objective-c++") and has_cxx:
        top = b"%s/include/c++/%s" % (prefix, version)
        tools = (b"%s/include/%s/c++/%s" % (prefix, triple, version), b"%s/%s" % (top, triple))
        cxx = [top, *(b"/".join(filter(None, (each, multilib))) for each in tools)]
        cxx.append(top + b"/backward")
    return (
        *cxx,
        *(each + b"/include" for each in own),
        *_with(LOCAL, multiarch),
        *(each + b"/include-fixed" for each in own),
        b"%s/%s/include" % (prefix, triple),
        *_with(HEADERS.rstrip(b"/"), multiarch),
    )


def _value(argv: Sequence[bytes], flag: bytes) -> bytes:
    at = argv.index(flag) + 1 if flag in argv else len(argv)
    return argv[at] if at < len(argv) else b""


def _with(directory: bytes, multiarch: bytes) -> list[bytes]:
    return [b"%s/%s" % (directory, multiarch), directory] if multiarch else [directory]


#: searched like -I, after its directories
EVERY_LANGUAGE = b"CPATH"
#: searched like -isystem, after its directories
OF_LANGUAGE = {
    "c": b"C_INCLUDE_PATH",
    "c++": b"CPLUS_INCLUDE_PATH",
    "objective-c": b"OBJC_INCLUDE_PATH",
    "objective-c++": b"OBJCPLUS_INCLUDE_PATH",
}
VARIABLES = (EVERY_LANGUAGE, *OF_LANGUAGE.values())
Directories = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """Directories by kind, in their order; results for equal ones are remembered."""

    cwd: bytes
    quote: Directories
    bracket: Directories
    system: Directories
    builtin: Directories
    after: Directories


class SearchPaths:
    """Search paths by directories as they were given."""

    def __init__(self, files: TracedFiles) -> None:
        self._files = files
        self._known: dict[Searched, Directories] = {}

    def directories(
        self,
        invocation: Invocation,
        cwd: bytes,
        variables: dict[bytes, bytes],
        builtin: Sequence[bytes],
    ) -> Directories:
        """Return the directories in the order of the search, absolute and resolved."""
        own = variables.get(OF_LANGUAGE.get(invocation.language, b""))
        searched = Searched(
            cwd,
            tuple(invocation.quote),
            (*invocation.include, *_listed(variables.get(EVERY_LANGUAGE))),
            (*invocation.system, *_listed(own)),
            tuple(builtin),
            tuple(invocation.after),
        )
        found = self._known.get(searched)
        if found is None:
            found = self._known[searched] = self._search(searched)
        return found

    def _search(self, searched: Searched) -> Directories:
        system = self._existing(
            (*searched.system, *searched.builtin, *searched.after), searched.cwd
        )
        bracket = [
            d for d in self._existing(searched.bracket, searched.cwd) if d not in set(system)
        ]
        quote = self._existing(searched.quote, searched.cwd)
        return tuple(dict.fromkeys((*quote, *bracket, *system)))

    def _existing(self, directories: Sequence[bytes], cwd: bytes) -> list[bytes]:
        resolved = (
            self._files.resolve_directory(self._files.join(cwd, each)) for each in directories
        )
        unique = dict.fromkeys(resolved)
        return [each for each in unique if self._files.has_directory(each, cwd)]


def _listed(value: bytes | None) -> Iterable[bytes]:
    """Split a variable at colons; an empty element is the current directory."""
    return () if not value else (each or b"." for each in value.split(b":"))
