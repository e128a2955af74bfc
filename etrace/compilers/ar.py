# SPDX-License-Identifier: Apache-2.0
"""argv of `ar` -> whether it writes an archive, and which arguments may name it.

ar(1): `ar [-]{dmpqrstx}[mod...] [relpos] [count] archive [member...]`, where the first argument is
letters with or without a dash, options may be anywhere, and `-M` reads a script from standard
input. llvm-ar also takes letters without a dash after long options. Which operand is the archive
is left to who knows what was written: relpos and count were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from etrace.compilers.options import INPUT, Options

WRITES = b"dmqr"  # delete, move, append, replace; s only renews the index
SCRIPT = b"M"


class Action(Enum):
    """Actions of `ar` on archives."""

    READS = "reads"
    WRITES = "writes"
    SCRIPT = "writes those that a script on standard input names"


@dataclass(frozen=True, slots=True)
class ArCommand:
    """`operands`: the archive and what is before and after it, in order."""

    action: Action
    operands: tuple[bytes, ...]


def _action(letters: bytes) -> Action:
    if any(letter in WRITES for letter in letters):
        return Action.WRITES
    return Action.SCRIPT if SCRIPT in letters else Action.READS


def parse(argv: Sequence[bytes], options: Options) -> ArCommand:
    """Read a command line; `options` are those of archivers.toml, long ones with an argument."""
    letters, operands = b"", []
    rest = list(argv[1:])
    if rest and not rest[0].startswith(b"-"):
        letters = rest.pop(0)
    for argument in options.parse(rest):
        if argument.meaning == INPUT:
            operands.append(argument.value)
        elif not argument.flag.startswith((b"--", b"-X")):  # -X32_64 is AIX's
            letters += argument.flag[1:]
    if not letters and operands:
        letters = operands.pop(0)
    return ArCommand(_action(letters), tuple(operands))
