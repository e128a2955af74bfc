# SPDX-License-Identifier: Apache-2.0
"""Names of function ids, by any number of instrumentation maps.

An id's bits from 24 on are the number of the shared object that it belongs to; 0 is the executable.
Without a map an id is shown as `#id`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from re import compile as compile_regex

from etrace.errors import EtraceError, UsageError
from etrace.figures import agree
from etrace.xray.instrumentation import OBJECT_SHIFT, InstrumentationMap, SledKind

#: the kinds of sled that write records of a kind
SLED_OF_KIND = {2: SledKind.TAIL_CALL, 4: SledKind.CUSTOM_EVENT, 5: SledKind.TYPED_EVENT}
MAX_OBJECT = 255
LAST_ID = 2**32 - 1
NUMBER = compile_regex("[0-9]+")


@dataclass(frozen=True)
class Names:
    """Names of ids; empty without maps."""

    maps: Sequence[InstrumentationMap] = ()
    demangled: bool = True
    _known: dict[int, str] = field(default_factory=dict, repr=False)

    def _map(self, function: int) -> InstrumentationMap | None:
        number = function >> OBJECT_SHIFT
        return next((m for m in self.maps if m.object_number == number), None)

    def name(self, function: int) -> str:
        """Return the name of a function id."""
        if function not in self._known:
            found = self._map(function)
            name = found.name(function, demangled=self.demangled) if found else f"#{function}"
            self._known[function] = name
        return self._known[function]

    def place(self, function: int) -> str:
        """Return `file:line` of a function's declaration, or an empty string."""
        found = self._map(function)
        declaration = found.declaration(function) if found else None
        return str(declaration) if declaration else ""

    def matching(self, patterns: Sequence[str]) -> set[int]:
        """Return the ids whose name matches a glob or equals a pattern; `#7` is an id."""
        numbers = (p[1:] for p in patterns if p.startswith("#"))
        found = {int(n) for n in numbers if NUMBER.fullmatch(n) and int(n) <= LAST_ID}
        globs = [compile_regex(translate(p)) for p in patterns]
        for one in self.maps:
            base = one.object_number << OBJECT_SHIFT
            for number in range(base + 1, base + one.n_functions + 1):
                name = self.name(number)
                if name in patterns or any(glob.match(name) for glob in globs):
                    found.add(number)
        if not found:
            raise EtraceError(
                f"no function matches {', '.join(patterns)}",
                "`etrace xray extract BINARY` lists them" if self.maps else "name functions by -m",
            )
        return found

    def misfits(self, functions: Collection[int], kinds: Collection[int]) -> Iterator[str]:
        """Return why a log probably does not belong to these maps: missing ids, missing sleds."""
        if not self.maps:
            return
        unknown = sorted(f for f in functions if (m := self._map(f)) is None or not m.address(f))
        if unknown:
            shown = ", ".join(f"#{f}" for f in unknown[:3]) + (", .." if len(unknown) > 3 else "")
            yield (
                f"{agree(len(unknown), 'function id{s} {is|are} not in the map')} ({shown}): "
                "is it the program that wrote the log?"
            )
        sleds = {sled.kind for one in self.maps for sled in one.sleds}
        for kind, sled in SLED_OF_KIND.items():
            if kind in kinds and sled not in sleds:
                yield (
                    f"the log has records of a {sled.name.lower().replace('_', ' ')} and the map "
                    "no place for one: is it the program that wrote the log?"
                )


def read_maps(options: Sequence[str]) -> list[InstrumentationMap]:
    """Read `[N=]FILE` of each option; N is the object's number, by default 0, then counted up."""
    maps: list[InstrumentationMap] = []
    for position, option in enumerate(options):
        number, path = position, option
        head, equals, tail = option.partition("=")
        if equals and NUMBER.fullmatch(head):
            number, path = int(head), tail
        if number > MAX_OBJECT or any(one.object_number == number for one in maps):
            wrong = f"is above {MAX_OBJECT}" if number > MAX_OBJECT else "has a map already"
            hint = "-m PROGRAM names object 0, -m 1=FILE the first shared object"
            raise UsageError(f"--map {option}: object {number} {wrong}", hint)
        maps.append(InstrumentationMap.from_elf(Path(path), number))
    return maps
