# SPDX-License-Identifier: Apache-2.0
"""Function ids -> names, by any number of instrumentation maps.

The id of a function is the number of its run of equal function addresses, counted from 1 in the
order of the map; its bits from 24 on are the number of the shared object, 0 for the executable.
The ELF reader is imported only for a map, so reports without names start faster. Source:
compiler-rt's xray_interface.cpp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import translate
from functools import cached_property
from itertools import groupby
from pathlib import Path
from re import compile as compile_regex
from typing import TYPE_CHECKING

from etrace.errors import EtraceError, UsageError
from etrace.figures import agree

if TYPE_CHECKING:
    from etrace.xray.elf.lines import Declaration

OBJECT_SHIFT = 24
#: bits of a function id within its object
LOCAL_MASK = (1 << OBJECT_SHIFT) - 1


class SledKind(IntEnum):
    """What a sled instruments."""

    ENTRY = 0
    EXIT = 1
    TAIL_CALL = 2
    ENTRY_WITH_ARGUMENTS = 3
    CUSTOM_EVENT = 4
    TYPED_EVENT = 5


@dataclass(frozen=True, slots=True)
class Sled:
    """One instrumented place; addresses are those of the linked file."""

    function_id: int
    address: int
    function: int
    kind: int
    always_instrument: bool
    version: int

    @property
    def kind_name(self) -> str:
        """The name of its kind, as llvm-xray prints it."""
        names = {
            SledKind.ENTRY: "function-enter",
            SledKind.EXIT: "function-exit",
            SledKind.TAIL_CALL: "tail-exit",
            SledKind.ENTRY_WITH_ARGUMENTS: "log-args-enter",
            SledKind.CUSTOM_EVENT: "custom-event",
            SledKind.TYPED_EVENT: "typed-event",
        }
        return names[SledKind(self.kind)] if self.kind in names else f"kind-{self.kind}"


@dataclass(frozen=True)
class InstrumentationMap:
    """Functions of one binary by id. `object_number` is 0 for the executable, 1.. for DSOs.

    A DSO's ids carry its number in their bits from 24 on (LLVM 20, -fxray-shared).
    """

    path: Path
    sleds: tuple[Sled, ...]
    object_number: int = 0

    @classmethod
    def from_elf(cls, path: str | Path, object_number: int = 0) -> InstrumentationMap:
        """Read the map of an ELF file; EtraceError when it has none or cannot be read."""
        from etrace.xray.elf.sleds import read_sleds

        path = Path(path)
        return cls(path, tuple(Sled(*row) for row in read_sleds(path)), object_number)

    @property
    def n_functions(self) -> int:
        """How many functions are instrumented."""
        return self.sleds[-1].function_id if self.sleds else 0

    @cached_property
    def addresses(self) -> Sequence[int]:
        """Address of each function, by id - 1."""
        return [next(sleds).function for _, sleds in groupby(self.sleds, key=_function_id)]

    @cached_property
    def kinds(self) -> Mapping[int, frozenset[int]]:
        """Kinds of the sleds of each function id."""
        return {
            number: frozenset(sled.kind for sled in sleds)
            for number, sleds in groupby(self.sleds, key=_function_id)
        }

    @cached_property
    def mangled(self) -> Mapping[int, str]:
        """Symbols by function address, as the linker knows them."""
        from etrace.xray.elf.symbols import names_in

        return names_in(self.path, frozenset(self.addresses))

    @cached_property
    def declarations(self) -> Mapping[int, Declaration]:
        """Declarations of functions by address, as far as the debug information has them."""
        from etrace.xray.elf.lines import declarations_in

        return declarations_in(self.path, frozenset(self.addresses))

    def address(self, function_id: int) -> int | None:
        """Return the address of a function, None when the map has no such id."""
        if function_id >> OBJECT_SHIFT != self.object_number:
            return None
        number = function_id & LOCAL_MASK
        return self.addresses[number - 1] if 0 < number <= self.n_functions else None

    def name(self, function_id: int, *, demangled: bool = True) -> str:
        """Return the name of a function: of its symbol, else `@(address)`, else `#id`."""
        address = self.address(function_id)
        if address is None:
            return f"#{function_id}"
        name = self.mangled.get(address)
        if name is None:
            return f"@({address:x})"
        if not demangled:
            return name
        from etrace.xray.elf.demangle import demangle

        return demangle(name)

    def declaration(self, function_id: int) -> Declaration | None:
        """Return where a function is declared, None if unknown."""
        address = self.address(function_id)
        return None if address is None else self.declarations.get(address)


def _function_id(sled: Sled) -> int:
    return sled.function_id


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
