# SPDX-License-Identifier: Apache-2.0
"""Resolves function ids by the instrumentation map of a binary.

The id of a function is the number of its run of equal function addresses, counted from 1 in the
order of the map. The ELF reader is imported only for a map, so reports without names start faster.
Source: compiler-rt's xray_interface.cpp, and reference/xray.md section 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etrace.xray.lines import Declaration

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
        from etrace.xray.sleds import read_sleds

        path = Path(path)
        return cls(path, read_sleds(path), object_number)

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
        from etrace.xray.symbols import names_in

        return names_in(self.path, frozenset(self.addresses))

    @cached_property
    def declarations(self) -> Mapping[int, Declaration]:
        """Declarations of functions by address, as far as the debug information has them."""
        from etrace.xray.lines import declarations_in

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
        from etrace.xray.demangle import demangle

        return demangle(name)

    def declaration(self, function_id: int) -> Declaration | None:
        """Return where a function is declared, None if unknown."""
        address = self.address(function_id)
        return None if address is None else self.declarations.get(address)


def _function_id(sled: Sled) -> int:
    return sled.function_id
