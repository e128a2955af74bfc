# SPDX-License-Identifier: Apache-2.0
"""Bytes of ELF sections, unpacked: SHF_COMPRESSED by zlib or zstd, and GNU's older `.zdebug_`.

Formats: System V gABI, "Section Compression"; `.zdebug_` is "ZLIB", the size in 8 big-endian bytes,
then zlib data. What is damaged or cannot be unpacked here has no bytes.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from etrace.errors import EtraceError
from etrace.xray.source import unzstd

SHF_COMPRESSED = 0x800
COMPRESSED_ZLIB, COMPRESSED_ZSTD = 1, 2
OLD_MAGIC = b"ZLIB"
OLD_HEADER_BYTES = 12


def _raw(elf: ELFFile, section: Any) -> bytes:
    elf.stream.seek(section["sh_offset"])
    return bytes(elf.stream.read(section["sh_size"]))


def _inflate(data: bytes, n_bytes: int) -> bytes:
    return zlib.decompressobj().decompress(data, n_bytes)


def _unpack(elf: ELFFile, data: bytes, name: str) -> bytes:
    head = struct.Struct(
        ("<" if elf.little_endian else ">") + ("I4xQQ" if elf.elfclass == 64 else "III")
    )
    how, n_bytes, _ = head.unpack_from(data)
    if how == COMPRESSED_ZLIB:
        return _inflate(data[head.size :], n_bytes)
    return unzstd(data[head.size :], name) if how == COMPRESSED_ZSTD else b""


def read_section(elf: ELFFile, name: str) -> bytes:
    """Return the bytes of a section; none when it is missing, empty (NOBITS) or damaged."""
    section = elf.get_section_by_name(name)
    try:
        if section is None:
            old = elf.get_section_by_name(f".z{name[1:]}")
            data = _raw(elf, old) if old is not None else b""
            is_packed = data.startswith(OLD_MAGIC) and len(data) > OLD_HEADER_BYTES
            size = int.from_bytes(data[len(OLD_MAGIC) : OLD_HEADER_BYTES], "big")
            return _inflate(data[OLD_HEADER_BYTES:], size) if is_packed else b""
        if section["sh_type"] == "SHT_NOBITS":
            return b""
        data = _raw(elf, section)
        return _unpack(elf, data, name) if section["sh_flags"] & SHF_COMPRESSED else data
    except (ELFError, EtraceError, zlib.error, struct.error, OverflowError, OSError):
        return b""


@dataclass(frozen=True, slots=True)
class DebugSections:
    """What DWARF is read from; addresses of split units begin at `address_base`."""

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
