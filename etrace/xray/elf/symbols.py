# SPDX-License-Identifier: Apache-2.0
"""Names of addresses: symbol tables of a binary, of its debug file, and of files packed into it.

Order: .symtab, the separate debug file's .symtab (build id, then .gnu_debuglink), .gnu_debugdata
(an xz-compressed ELF file, as Fedora ships), .dynsym. Tables are unpacked whole: pyelftools' symbol
objects take seconds on a compiler's hundred thousand symbols. Formats: System V gABI, GDB manual
18.3.
"""

from __future__ import annotations

import io
import lzma
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection
from libetrace.core.regular_file import regular_stream

from etrace.parse.unpacking import unxz
from etrace.xray.elf.sections import DAMAGE, read_section, section_bytes

DEBUG_ROOT = Path("/usr/lib/debug")
STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC = 0, 2, 10
STB_LOCAL = 0
EM_ARM = "EM_ARM"
#: longer names are damage: a thousand symbols could share one name of many MB
MAX_NAME_BYTES = 1 << 16


def _table(elf: ELFFile, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield (name offset, info, value, size) of the defined symbols of a table."""
    section = elf.get_section_by_name(name)
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return
    order = "<" if elf.little_endian else ">"
    data = section_bytes(elf, section)
    if elf.elfclass == 64:
        for n, info, _, where, value, size in struct.iter_unpack(
            order + "IBBHQQ", data[: len(data) // 24 * 24]
        ):
            if where:
                yield n, info, value, size
    else:
        for n, value, size, info, _, where in struct.iter_unpack(
            order + "IIIBBH", data[: len(data) // 16 * 16]
        ):
            if where:
                yield n, info, value, size


def _rank(info: int, size: int) -> tuple[bool, bool, bool]:
    """Functions before labels, global before local, sized before empty: the larger the better."""
    return info & 15 in (STT_FUNC, STT_GNU_IFUNC), info >> 4 != STB_LOCAL, size > 0


def read_table(elf: ELFFile, name: str, wanted: frozenset[int]) -> dict[int, str]:
    """Return the names that a symbol table has for the wanted addresses.

    A symbol whose name lies outside the string table, or does not end in it, has no name.
    """
    section = elf.get_section_by_name(name)
    if section is None:
        return {}
    strings = section_bytes(elf, elf.get_section(section["sh_link"]))
    thumb = elf["e_machine"] == EM_ARM
    best: dict[int, tuple[tuple[bool, bool, bool], int]] = {}
    for offset, info, value, size in _table(elf, name):
        address = value & ~1 if thumb else value
        if address not in wanted or info & 15 not in (STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC):
            continue
        rank = _rank(info, size)
        if (address not in best or rank > best[address][0]) and _name_bytes(strings, offset) > 0:
            best[address] = (rank, offset)
    return {address: _string(strings, offset) for address, (_, offset) in best.items()}


def _name_bytes(strings: bytes, offset: int) -> int:
    """Return the length of the name at an offset; 0 or less when there is none."""
    return strings.find(b"\0", offset, offset + MAX_NAME_BYTES) - offset


def _string(strings: bytes, offset: int) -> str:
    return strings[offset : offset + _name_bytes(strings, offset)].decode(errors="replace")


# ---- where the symbols may be ----


def _build_id(elf: ELFFile) -> str | None:
    section = elf.get_section_by_name(".note.gnu.build-id")
    if not isinstance(section, NoteSection):
        return None
    for note in section.iter_notes():
        if note["n_type"] == "NT_GNU_BUILD_ID":
            return str(note["n_desc"])
    return None


def _debug_link(elf: ELFFile) -> str | None:
    return read_section(elf, ".gnu_debuglink").split(b"\0", 1)[0].decode(errors="replace") or None


def debug_files(elf: ELFFile, path: Path) -> Iterator[Path]:
    """Yield the places where a binary's separate debug file is looked for, as gdb does."""
    build_id = _build_id(elf)
    if build_id:
        yield DEBUG_ROOT / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    link = _debug_link(elf)
    if link and "/" not in link:
        directory = path.resolve().parent
        yield directory / link
        yield directory / ".debug" / link
        yield DEBUG_ROOT / directory.relative_to("/") / link


def _packed(elf: ELFFile, path: Path) -> IO[bytes] | None:
    data = read_section(elf, ".gnu_debugdata")
    if not data:
        return None
    try:
        return io.BytesIO(unxz(data, f"{path}: .gnu_debugdata"))
    except lzma.LZMAError:
        return None


def find_debug_file(elf: ELFFile, path: Path) -> Path | None:
    """Return the separate debug file of a binary, or None."""
    wanted = _build_id(elf)
    for place in debug_files(elf, path):
        if not place.is_file() or place.resolve() == path.resolve():
            continue
        with regular_stream(place) as stream:
            try:
                found = _build_id(ELFFile(stream))
            except DAMAGE:
                continue
        if wanted is None or found in (None, wanted):
            return place
    return None


def read_names(elf: ELFFile, path: Path, wanted: frozenset[int]) -> Mapping[int, str]:
    """Return mangled names for the wanted addresses (link-time virtual addresses)."""
    names = read_table(elf, ".symtab", wanted)
    if len(names) < len(wanted) and (debug := find_debug_file(elf, path)):
        with regular_stream(debug) as stream:
            names = read_table(ELFFile(stream), ".symtab", wanted) | names
    if len(names) < len(wanted) and (packed := _packed(elf, path)):
        names = read_table(ELFFile(packed), ".symtab", wanted) | names
    if len(names) < len(wanted):
        names = read_table(elf, ".dynsym", wanted) | names
    return names


def names_in(path: Path, wanted: frozenset[int]) -> Mapping[int, str]:
    """Return mangled names for the wanted addresses of a file; none when it cannot be read."""
    try:
        with regular_stream(path) as stream:
            return read_names(ELFFile(stream), path, wanted)
    except (OSError, *DAMAGE):
        return {}
