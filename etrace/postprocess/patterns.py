# SPDX-License-Identifier: Apache-2.0
"""`n`: every command line against every pattern of `exclude_command_variants`, as bits.

Pattern i is the i-th different one in the order of the configuration, and bit `0x80 >> i % 8` of
byte i / 8 of each execution. A pattern is matched as fnmatch(3) does without flags against the
arguments joined by one space, as Samsung CAS documents its precomputed command patterns.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from libetrace.image.file import NewTable
from libetrace.select.patterns import PatternSet

from etrace.figures import count
from etrace.postprocess.run import Work, product
from etrace.threads import mapped

#: rows that a thread takes at most at once
N_ROWS = 1 << 14


def match_all(patterns: Sequence[bytes], work: Work) -> bytearray:
    """Return the bits of all executions; `jobs` threads take ranges of rows."""
    strings, executions = work.image["strings"], work.image["executions"]
    found, n_rows = PatternSet(patterns), executions.n_rows
    out = bytearray(n_rows * found.row_bytes)
    n_piece = min(-(-n_rows // work.jobs) or 1, N_ROWS)

    def match(begin: int) -> None:
        end = min(begin + n_piece, n_rows)
        found.match_rows(
            strings["start"],
            strings["bytes"],
            executions["argv.start"][begin : end + 1],
            work.image["arguments"]["string"],
            memoryview(out)[begin * found.row_bytes : end * found.row_bytes],
        )

    for _ in mapped(match, range(0, n_rows, n_piece), work.jobs):
        pass
    return out


@dataclass(frozen=True, slots=True)
class CommandPatterns:
    """The phase. Without patterns its tables are empty, and there is no `n`."""

    name: str = "patterns"
    tables: tuple[str, ...] = ("patterns", "pattern_bits")
    inputs: tuple[str, ...] = ("exclude_command_variants",)

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables `patterns` and `pattern_bits`."""
        texts = [os.fsencode(pattern) for pattern in work.config.command_patterns]
        numbers = array("I", map(work.strings.number, texts))
        if not texts:
            return [product("patterns", numbers), product("pattern_bits", b"")]
        return [product("patterns", numbers), product("pattern_bits", match_all(texts, work))]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        n_patterns, bits = tables[0].n_rows, bytes(tables[1].columns[0].data)
        n_hits = int.from_bytes(bits, "big").bit_count()
        return f"{count(n_hits, 'match')} of {count(n_patterns, 'command pattern')}"


PHASE = CommandPatterns()
