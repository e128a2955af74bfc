# SPDX-License-Identifier: Apache-2.0
"""Bytes of ELF sections, unpacked: SHF_COMPRESSED by zlib or zstd, and GNU's older `.zdebug_`.

Formats: System V gABI, "Section Compression"; `.zdebug_` is "ZLIB", the size in 8 big-endian bytes,
then zlib data. Damaged sections, and those that cannot be unpacked here, have no bytes.
"""

from __future__ import annotations

import lzma
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from etrace.errors import EtraceError
from etrace.parse.unpacking import TooLargeError, inflate, unzstd

SHF_COMPRESSED = 0x800
COMPRESSED_ZLIB, COMPRESSED_ZSTD = 1, 2
OLD_MAGIC = b"ZLIB"
OLD_HEADER_BYTES = 12
#: exceptions of pyelftools for a damaged file, and those that damaged numbers cause
DAMAGE = (
    ELFError, DWARFError, struct.error, zlib.error, lzma.LZMAError, ValueError, OverflowError,
    KeyError, AttributeError, TypeError, AssertionError, MemoryError, RecursionError,
)  # fmt: skip


def _raw(elf: ELFFile, section: Any) -> bytes:
    begin = min(section["sh_offset"], elf.stream_len)
    elf.stream.seek(begin)
    return bytes(elf.stream.read(min(section["sh_size"], elf.stream_len - begin)))


def _file(elf: ELFFile) -> str:
    """Return the name of an ELF file, empty for one inside another file."""
    return str(getattr(elf.stream, "name", "packed symbols"))


def _unpack(elf: ELFFile, data: bytes, name: str) -> bytes:
    head = struct.Struct(
        ("<" if elf.little_endian else ">") + ("I4xQQ" if elf.elfclass == 64 else "III")
    )
    how, n_bytes, _ = head.unpack_from(data)
    if how == COMPRESSED_ZLIB:
        return inflate(data[head.size :], name, n_bytes)
    return unzstd(data[head.size :], name) if how == COMPRESSED_ZSTD else b""


def _unpack_old(data: bytes, name: str) -> bytes:
    if not data.startswith(OLD_MAGIC) or len(data) < OLD_HEADER_BYTES:
        return b""
    n_bytes = int.from_bytes(data[len(OLD_MAGIC) : OLD_HEADER_BYTES], "big")
    return inflate(data[OLD_HEADER_BYTES:], name, n_bytes)


def section_bytes(elf: ELFFile, section: Any) -> bytes:
    """Return the bytes of a section, without trusting its size. TooLargeError."""
    try:
        if section["sh_type"] == "SHT_NOBITS":
            return b""
        data = _raw(elf, section)
        if not section["sh_flags"] & SHF_COMPRESSED:
            return data
        return _unpack(elf, data, f"{_file(elf)}: {section.name}")
    except TooLargeError:
        raise
    except (EtraceError, OSError, *DAMAGE):
        return b""


def read_section(elf: ELFFile, name: str) -> bytes:
    """Return the bytes of a section; none when it is missing, empty (NOBITS) or damaged.

    TooLargeError.
    """
    try:
        section = elf.get_section_by_name(name)
        if section is not None:
            return section_bytes(elf, section)
        old = elf.get_section_by_name(f".z{name[1:]}")
        return _unpack_old(_raw(elf, old), f"{_file(elf)}: {old.name}") if old is not None else b""
    except TooLargeError:
        raise
    except (EtraceError, OSError, *DAMAGE):
        return b""


def check_sizes(elf: ELFFile) -> None:
    """Refuse a file before another library unpacks its debug sections whole. TooLargeError."""
    for section in elf.iter_sections():
        if section.name.startswith(".debug_") and section["sh_flags"] & SHF_COMPRESSED:
            section_bytes(elf, section)
        elif section.name.startswith(".zdebug_"):
            read_section(elf, f".{section.name[2:]}")


@dataclass(frozen=True, slots=True)
class DebugSections:
    """The sections with DWARF; addresses of split units begin at `address_base`."""

    info: bytes
    abbrev: bytes
    addr: bytes
    line: bytes
    line_str: bytes
    strings: bytes
    is_big: bool
    address_base: int = 0


def read_debug_sections(elf: ELFFile) -> DebugSections:
    """Return the sections of a linked file."""
    names = ("info", "abbrev", "addr", "line", "line_str", "str")
    info, abbrev, addr, line, line_str, strings = (read_section(elf, f".debug_{n}") for n in names)
    return DebugSections(info, abbrev, addr, line, line_str, strings, is_big=not elf.little_endian)
