# SPDX-License-Identifier: Apache-2.0
"""A compilation's options and its compiler's own directories -> the search path for headers.

Order and what is left out: GCC's manual, "Directory Options", and gcc/incpath.cc. Quote directories
first, then -I and CPATH, -isystem and C_INCLUDE_PATH, the compiler's own, -idirafter. A directory
that is also a system directory is searched as one; repetitions are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from etrace.compilers.invocation import Invocation
from etrace.postprocess.compilations.traced_files import TracedFiles

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
class Given:
    """Directories by kind, in the given order; results for equal ones are remembered."""

    cwd: bytes
    quote: Directories
    bracket: Directories
    system: Directories
    builtin: Directories
    after: Directories


class SearchPaths:
    """Search paths by given directories."""

    def __init__(self, files: TracedFiles) -> None:
        self._files = files
        self._known: dict[Given, Directories] = {}

    def directories(
        self,
        invocation: Invocation,
        cwd: bytes,
        variables: dict[bytes, bytes],
        builtin: Sequence[bytes],
    ) -> Directories:
        """Return the directories in the order of the search, absolute and resolved."""
        own = variables.get(OF_LANGUAGE.get(invocation.language, b""))
        given = Given(
            cwd,
            tuple(invocation.quote),
            (*invocation.include, *_listed(variables.get(EVERY_LANGUAGE))),
            (*invocation.system, *_listed(own)),
            tuple(builtin),
            tuple(invocation.after),
        )
        found = self._known.get(given)
        if found is None:
            found = self._known[given] = self._search(given)
        return found

    def _search(self, given: Given) -> Directories:
        system = self._existing((*given.system, *given.builtin, *given.after), given.cwd)
        bracket = [d for d in self._existing(given.bracket, given.cwd) if d not in set(system)]
        quote = self._existing(given.quote, given.cwd)
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
