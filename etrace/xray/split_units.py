# SPDX-License-Identifier: Apache-2.0
"""Finds the `.dwo` files of a program built with -gsplit-dwarf, by the skeletons that it keeps.

A skeleton unit names the file and where its addresses begin in .debug_addr; DWARF 5, section 3.1.2,
and GNU's attributes in DWARF 4. Packages (`.dwp`) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from etrace.xray.sections import DAMAGE, check_sizes

NAMES = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")
BASES = ("DW_AT_addr_base", "DW_AT_GNU_addr_base")
#: DW_AT_GNU_dwo_name as .debug_abbrev has it
OLD_MARK = b"\xb0\x42"


@dataclass(frozen=True, slots=True)
class SplitUnit:
    """A unit whose entries lie in another file; offsets are in .debug_addr and .debug_line."""

    path: Path
    address_base: int
    line_table: int


def _value(attributes: Any, *names: str) -> Any:
    return next((attributes[name].value for name in names if name in attributes), None)


def _split_unit(attributes: Any) -> SplitUnit | None:
    name = _value(attributes, *NAMES)
    if not isinstance(name, bytes):
        return None
    directory = _value(attributes, "DW_AT_comp_dir")
    directory = directory if isinstance(directory, bytes) else b""
    path = Path(directory.decode(errors="surrogateescape"), name.decode(errors="surrogateescape"))
    base, table = _value(attributes, *BASES), _value(attributes, "DW_AT_stmt_list")
    return SplitUnit(path, base or 0, table or 0) if path.is_file() else None


def find_split_units(elf: ELFFile, abbrev: bytes) -> Iterator[SplitUnit]:
    """Yield the units whose file is there; damaged debug information ends the search.

    Top entries are only read of units that can be skeletons: it costs milliseconds each. `abbrev`
    is the section .debug_abbrev.
    """
    if elf.get_section_by_name(".debug_addr") is None:
        return
    has_old = OLD_MARK in abbrev
    try:
        check_sizes(elf)
        for unit in elf.get_dwarf_info().iter_CUs():
            is_new = unit["version"] >= 5 and unit["unit_type"] == "DW_UT_skeleton"
            if not is_new and not (has_old and unit["version"] < 5):
                continue
            found = _split_unit(unit.get_top_DIE().attributes)
            if found is not None:
                yield found
    except DAMAGE:
        return
