# SPDX-License-Identifier: Apache-2.0
"""Files -> whether they are ELF or LLVM bitcode, by their first bytes.

Sources: elf(5) for EI_MAG; LLVM's Bitcode format page for `BC 0xC0DE` and the wrapper 0x0B17C0DE.
"""

from __future__ import annotations

import os

from libetrace.core.regular_file import read_head

ELF = b"\x7fELF"
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def _first_bytes(path: str | bytes | os.PathLike[str]) -> bytes:
    """Return the first four bytes of a regular file; none of anything else."""
    try:
        return read_head(path, 4)
    except OSError:
        return b""


def is_elf_file(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether a file is ELF now; False when it cannot be read."""
    return _first_bytes(path) == ELF


def is_llvm_bc_file(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether a file is LLVM bitcode now; False when it cannot be read."""
    return _first_bytes(path) in BITCODE


def is_elf_or_llvm_bc_file(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether a file is ELF or LLVM bitcode now; False when it cannot be read."""
    return _first_bytes(path) in (ELF, *BITCODE)
