# SPDX-License-Identifier: Apache-2.0
"""Reads the sleds of a binary out of its section `xray_instr_map`.

An entry is two words (address of the sled, address of its function), then kind, always-instrument
and version, padded to four words. Versions 0 and 1 have absolute addresses (which a position-
independent binary leaves to its relocations), version 2 has them relative to the word itself. All
of it is the same on every architecture. Source: compiler-rt's xray_interface.cpp, and
reference/xray.md section 8 for what was measured.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from libetrace.core.regular_file import regular_stream

from etrace.errors import EtraceError
from etrace.xray.elf.sections import DAMAGE, section_bytes

SECTION = "xray_instr_map"
ARCHIVE_MAGIC = b"!<arch>\n"
#: the first one whose words are relative to themselves
RELATIVE_VERSION = 2
#: the fields of etrace.xray.names.Sled
SledRow = tuple[int, int, int, int, bool, int]


def _relocations(elf: ELFFile, begin: int, end: int) -> Iterator[tuple[int, int | None, int]]:
    """Yield (address, addend or None, symbol's value) for the relocations of words in [begin, end).

    Without an addend it is in the word itself, as is the whole value of a word that RELR relocates.
    """
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        symbols: Any = elf.get_section(section["sh_link"]) if section["sh_link"] else None
        for relocation in section.iter_relocations():
            where, base = relocation["r_offset"], 0
            if not begin <= where < end:
                continue
            if relocation["r_info_sym"] and symbols is not None:
                base = symbols.get_symbol(relocation["r_info_sym"])["st_value"]
            yield where, relocation["r_addend"] if section.is_RELA() else None, base


class _Absolute:
    """Words of versions 0 and 1: those of the section, and what relocations make of them."""

    def __init__(self, elf: ELFFile, begin: int, end: int) -> None:
        self._moved = {
            where: (addend, base) for where, addend, base in _relocations(elf, begin, end)
        }

    def value(self, where: int, word: int) -> int:
        addend, base = self._moved.get(where, (None, 0))
        return base + (word if addend is None else addend)


def _entries(data: bytes, elf: ELFFile) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the fields of every entry."""
    order, word = ("<" if elf.little_endian else ">"), ("Q" if elf.elfclass == 64 else "I")
    padding = 13 if elf.elfclass == 64 else 5
    yield from struct.iter_unpack(f"{order}{word}{word}BBB{padding}x", data)


def _addresses(elf: ELFFile, section: Any) -> Iterator[tuple[int, int, int, bool, int]]:
    data, start = section_bytes(elf, section), section["sh_addr"]
    word = elf.elfclass // 8
    n_bytes = 4 * word
    mask = (1 << elf.elfclass) - 1
    code = mask ^ 1 if elf["e_machine"] == "EM_ARM" else mask  # bit 0 says Thumb
    absolute: _Absolute | None = None
    for i, (sled, function, kind, always, version) in enumerate(
        _entries(data[: len(data) // n_bytes * n_bytes], elf)
    ):
        at = start + i * n_bytes
        if version >= RELATIVE_VERSION:
            sled, function = at + sled, at + word + function  # noqa: PLW2901
        else:
            absolute = absolute or _Absolute(elf, start, start + len(data))
            sled, function = absolute.value(at, sled), absolute.value(at + word, function)  # noqa: PLW2901
        yield sled & mask, function & code, kind, bool(always), version


def _number(rows: Iterator[tuple[int, int, int, bool, int]]) -> Iterator[SledRow]:
    runs = groupby(rows, key=lambda row: row[1])
    for function_id, (_, sleds) in enumerate(runs, start=1):
        for row in sleds:
            yield (function_id, *row)


def _refuse_object(elf: ELFFile, path: Path) -> None:
    """Raise for an object file: it has a map for each function, the linker decides their order."""
    if elf["e_type"] == "ET_REL":
        n = sum(section.name == SECTION for section in elf.iter_sections())
        raise EtraceError(
            f"{path} is an object file with {n} sections {SECTION}: its functions have no ids "
            "before it is linked",
            "link it, and give the executable or shared object that was run",
        )


def _read_sleds(elf: ELFFile, path: Path) -> tuple[SledRow, ...]:
    _refuse_object(elf, path)
    section = elf.get_section_by_name(SECTION)
    if section is None:
        raise EtraceError(
            f"{path} has no section {SECTION}",
            "was it built with -fxray-instrument? is it the program that wrote the log?",
        )
    if section["sh_type"] == "SHT_NOBITS":
        raise EtraceError(
            f"{path} is a debug file: its section {SECTION} is empty",
            "give the program itself; its debug file is found automatically",
        )
    sleds = tuple(_number(_addresses(elf, section)))
    if any(function == 0 and version < RELATIVE_VERSION for *_, function, _, _, version in sleds):
        raise EtraceError(
            f"{path}: addresses of its {SECTION} are in relocations of an unknown form",
            "link it without --pack-dyn-relocs=android, or with --apply-dynamic-relocs",
        )
    return sleds


def _refuse_archive(stream: IO[bytes], path: Path) -> None:
    if stream.read(len(ARCHIVE_MAGIC)) == ARCHIVE_MAGIC:
        raise EtraceError(
            f"{path} is an archive of object files: these have no ids before they are linked",
            "give the executable or shared object that was run",
        )


def read_sleds(path: Path) -> tuple[SledRow, ...]:
    """Read the map of an ELF file in its order; EtraceError when it has none or cannot be read."""
    try:
        with regular_stream(path) as stream:
            _refuse_archive(stream, path)
            return _read_sleds(ELFFile(stream), path)
    except OSError as error:
        raise EtraceError(
            f"cannot read {path}: {error.strerror}", "name the program that wrote the log"
        ) from error
    except DAMAGE as error:
        raise EtraceError(
            f"{path}: not a readable ELF file: {error}", "name the program that wrote the log"
        ) from error
