# SPDX-License-Identifier: Apache-2.0
"""Where functions are declared: DWARF subprograms by their first address.

A subprogram has the file and line of its declaration (DWARF 5, section 2.14). Without one
(-gline-tables-only, a lost .dwo file) the first row of the function with a line is used. The line
table is the second choice because an XRay sled is before the prologue, where compilers emit line 0.

A program built with -gsplit-dwarf keeps skeletons, which name its `.dwo` files and where their
addresses begin in .debug_addr (DWARF 5, section 3.1.2; GNU's attributes in DWARF 4). Packages
(`.dwp`) are not read.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from libetrace.core.regular_file import regular_stream
from libetrace.xray import line_table, subprograms

from etrace.xray.elf.sections import (
    DAMAGE,
    DebugSections,
    check_sizes,
    read_debug_sections,
    read_section,
)
from etrace.xray.elf.symbols import find_debug_file

NAMES = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")
BASES = ("DW_AT_addr_base", "DW_AT_GNU_addr_base")
#: DW_AT_GNU_dwo_name as .debug_abbrev has it
OLD_MARK = b"\xb0\x42"


@dataclass(frozen=True, slots=True)
class SplitUnit:
    """A unit whose entries are in another file; offsets are in .debug_addr and .debug_line."""

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


#: limit of the steps from a concrete function to its declaration
MAX_STEPS = 4
#: bytes of a sled and a prologue; rows farther from an address belong to another function
MAX_PROLOGUE = 64


@dataclass(frozen=True, slots=True)
class Declaration:
    """A place in a source file, with the name given to the compiler."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class _Found:
    """The known facts about a function: the next entry to read, and values of earlier entries."""

    link: int | None
    file: tuple[int, int] | None = None  # table and number
    line: int | None = None

    def learn(
        self, file: int | None, line: int | None, link: int | None, table: int | None
    ) -> None:
        """Take the values of an entry, unless an entry nearer to the function had them."""
        if self.file is None and file is not None and table is not None:
            self.file = table, file
        if self.line is None:
            self.line = line
        self.link = link if self.file is None or self.line is None else None


class _Files:
    """Names of files by line table and number."""

    def __init__(self, sections: DebugSections) -> None:
        self._sections = sections
        self._known = lru_cache(maxsize=None)(self._read)

    def _read(self, table: int, number: int) -> str | None:
        s = self._sections
        name = line_table.file_name(s.line, s.line_str, s.strings, table, number, s.is_big)
        return name.decode(errors="replace") if name else None

    def declaration(self, table: int, number: int, line: int) -> Declaration | None:
        """Return the place, None when the table has no such file."""
        name = self._known(table, number)
        return Declaration(name, line) if name else None


def _follow(sections: DebugSections, found: Collection[_Found], table: int | None) -> None:
    """Read the entries of functions and of their abstract origins."""
    for _ in range(MAX_STEPS):
        offsets = sorted({one.link for one in found if one.link is not None})
        read = subprograms.describe(
            sections.info, sections.abbrev, array("Q", offsets), sections.is_big
        )
        said = dict(zip(offsets, read, strict=True))
        for one in found:
            answer = said.get(one.link) if one.link is not None else None
            if answer is None:
                one.link = None
                continue
            file, line, link, own_table = answer
            one.learn(file, line, link, own_table if table is None else table)


def _declared(
    sections: DebugSections, wanted: Iterable[int], files: _Files, table: int | None = None
) -> Iterator[tuple[int, Declaration]]:
    """Yield declarations by address; `table` is the line table of a split unit, which has none."""
    entries = subprograms.find(
        sections.info, sections.abbrev, sections.addr, array("Q", sorted(wanted)),
        sections.is_big, sections.address_base,
    )  # fmt: skip
    found = {address: _Found(link=offset) for address, offset in entries.items()}
    _follow(sections, found.values(), table)
    for address, one in found.items():
        if one.file is None or not one.line:
            continue
        if declaration := files.declaration(*one.file, one.line):
            yield address, declaration


def _of_split_unit(
    sections: DebugSections, unit: SplitUnit, wanted: Iterable[int], files: _Files
) -> dict[int, Declaration]:
    with regular_stream(unit.path) as stream:
        elf = ELFFile(stream)
        split = replace(
            sections, info=read_section(elf, ".debug_info.dwo"),
            abbrev=read_section(elf, ".debug_abbrev.dwo"), address_base=unit.address_base,
        )  # fmt: skip
    return dict(_declared(split, wanted, files, unit.line_table))


def read_declarations(elf: ELFFile, wanted: frozenset[int]) -> dict[int, Declaration]:
    """Return the known declarations of functions that begin at the wanted addresses.

    Damaged or unknown debug information only loses declarations; it is not an error.
    """
    sections = read_debug_sections(elf)
    files = _Files(sections)
    found = dict(_declared(sections, wanted, files))
    if len(found) < len(wanted):
        for unit in find_split_units(elf, sections.abbrev):
            found |= _of_split_unit(sections, unit, wanted - found.keys(), files)
    missing = array("Q", sorted(wanted - found.keys()))
    rows = line_table.first_lines(sections.line, missing, MAX_PROLOGUE, sections.is_big)
    for address, row in rows.items():
        if declaration := files.declaration(*row):
            found[address] = declaration
    return found


def declarations_in(path: Path, wanted: frozenset[int]) -> dict[int, Declaration]:
    """Return the declarations in a file or its separate debug file."""
    try:
        with regular_stream(path) as stream:
            elf = ELFFile(stream)
            found = read_declarations(elf, wanted)
            debug = None if found else find_debug_file(elf, path)
        if debug is None:
            return found
        with regular_stream(debug) as stream:
            return read_declarations(ELFFile(stream), wanted)
    except (OSError, *DAMAGE):
        return {}
