# SPDX-License-Identifier: Apache-2.0
"""A linked file -> executable, shared object or partial link.

By the file itself if it exists and is ELF (ELF(5): e_type; a position-independent executable is a
shared object by type, but has an interpreter or DF_1_PIE), else by the linker's options.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from etrace.compilers.options import Argument
from etrace.compilers.regular_file import read_head

ELF_MAGIC = b"\x7fELF"
LITTLE_ENDIAN = 1
TYPE_OFFSET = 16
HEAD_BYTES = 18


class Kind(IntEnum):
    """As the column `linked.kind`."""

    ARCHIVE = 0
    EXECUTABLE = 1
    SHARED = 2
    PARTIAL = 3


class ElfType(IntEnum):
    """e_type of the ELF header."""

    RELOCATABLE = 1
    EXECUTABLE = 2
    SHARED = 3


def read_elf_type(path: bytes) -> int:
    """Return e_type of a file, 0 when it is not ELF, is gone or cannot be read."""
    head = read_head(path, HEAD_BYTES)
    if len(head) < HEAD_BYTES or not head.startswith(ELF_MAGIC):
        return 0
    order = "little" if head[5] == LITTLE_ENDIAN else "big"
    return int.from_bytes(head[TYPE_OFFSET:], order)  # type: ignore[arg-type]


def kind_by_options(options: Sequence[Argument]) -> Kind:
    """Return the kind that the linker's options request."""
    meanings = {argument.meaning for argument in options}
    if "partial" in meanings:
        return Kind.PARTIAL
    return Kind.SHARED if "shared" in meanings else Kind.EXECUTABLE


def kind_of(elf_type: int, options: Sequence[Argument]) -> Kind:
    """Return the kind of a module, by its ELF type (0: unknown) or the linker's options."""
    asked = kind_by_options(options)
    match elf_type:
        case ElfType.RELOCATABLE:
            return Kind.PARTIAL
        case ElfType.EXECUTABLE:
            return Kind.EXECUTABLE
        case ElfType.SHARED:
            return Kind.SHARED if asked is Kind.SHARED else Kind.EXECUTABLE
    return asked
