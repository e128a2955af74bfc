# SPDX-License-Identifier: Apache-2.0
"""Where functions are declared: DWARF subprograms by their first address.

The line table is no help: an XRay sled stands before the prologue, where compilers emit line 0. A
subprogram says in which file and line it was declared (DWARF 5, section 2.14). Only units that hold
a wanted address are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

#: how many steps from a concrete function to its declaration are followed
MAX_STEPS = 4
#: bytes of a sled and a prologue; what is farther from an address is of another function
MAX_PROLOGUE = 64
ADDRESS_FORMS = frozenset(("DW_FORM_addr", "DW_FORM_GNU_addr_index"))


@dataclass(frozen=True, slots=True)
class Declaration:
    """A place in a source file, as the compiler was told of it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def _attribute(die: DIE, name: str) -> tuple[DIE, Any] | None:
    """Find an attribute here or at what this is an instance of, with the entry that has it."""
    for _ in range(MAX_STEPS):
        if name in die.attributes:
            return die, die.attributes[name].value
        for link in ("DW_AT_specification", "DW_AT_abstract_origin"):
            if link in die.attributes:
                die = die.get_DIE_from_attribute(link)
                break
        else:
            return None
    return None


def _file_name(die: DIE, number: int) -> str | None:
    unit = die.cu
    if not isinstance(unit, CompileUnit):
        return None
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return None
    first = 0 if program["version"] >= 5 else 1
    entries = program["file_entry"]
    if not first <= number < len(entries) + first:
        return None
    name = entries[number - first].name
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _declaration(die: DIE) -> Declaration | None:
    file, line = _attribute(die, "DW_AT_decl_file"), _attribute(die, "DW_AT_decl_line")
    if file is None or line is None:
        return None
    name = _file_name(*file)
    return Declaration(name, line[1]) if name else None


def _first_address(die: DIE) -> int | None:
    low = die.attributes.get("DW_AT_low_pc")
    return None if low is None else int(low.value)


def _subprograms(unit: CompileUnit) -> Iterator[tuple[int, DIE]]:
    for die in unit.iter_DIEs():
        if die.tag == "DW_TAG_subprogram" and (address := _first_address(die)) is not None:
            yield address, die


def _may_hold(unit: CompileUnit, wanted: list[int]) -> bool:
    """Say whether a unit's range has a wanted address; units of many ranges are not judged."""
    top = unit.get_top_DIE()
    low, high = _first_address(top), top.attributes.get("DW_AT_high_pc")
    if low is None or high is None:
        return True
    is_address = high.form in ADDRESS_FORMS or high.form.startswith("DW_FORM_addrx")
    end = high.value if is_address else low + high.value
    at = bisect_left(wanted, low)
    return at < len(wanted) and wanted[at] < end


def _first_lines(unit: CompileUnit, wanted: list[int]) -> dict[int, Declaration]:
    """Return the first line that is not 0 behind each wanted address, before the next one."""
    program = unit.dwarfinfo.line_program_for_CU(unit)
    found: dict[int, Declaration] = {}
    if program is None:
        return found
    states = (entry.state for entry in program.get_entries() if entry.state)
    for state in sorted(states, key=lambda state: int(state.address)):
        at = bisect_right(wanted, state.address) - 1
        if at < 0 or not state.line or state.end_sequence or wanted[at] in found:
            continue
        name = _file_name(unit.get_top_DIE(), state.file)
        if name and state.address - wanted[at] < MAX_PROLOGUE:
            found[wanted[at]] = Declaration(name, state.line)
    return found


def read_declarations(elf: ELFFile, wanted: frozenset[int]) -> dict[int, Declaration]:
    """Return the declarations of functions that begin at the wanted addresses, as far as known.

    Damaged or unknown debug information costs the declarations, never an error.
    """
    found: dict[int, Declaration] = {}
    try:
        if not elf.has_dwarf_info():
            return found
        addresses = sorted(wanted)
        units = [u for u in elf.get_dwarf_info().iter_CUs() if _may_hold(u, addresses)]
        for unit in units:
            for address, die in _subprograms(unit):
                if address in wanted and (declaration := _declaration(die)):
                    found[address] = declaration
        if len(found) < len(wanted):  # -gline-tables-only has no subprograms
            for unit in units:
                found = _first_lines(unit, addresses) | found
    except (ELFError, DWARFError, KeyError, ValueError, AssertionError, OverflowError):
        return found
    return found
