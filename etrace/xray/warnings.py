# SPDX-License-Identifier: Apache-2.0
"""Texts for the damage in a log: one line for each problem, with its offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: (name, offset, skipped bytes, number) as libetrace.xray gives them
RawProblem = tuple[str, int, int, int]

TEXTS = {
    "unknown-kind": "metadata record of unknown kind {number}",
    "unknown-action": "function record with unknown action {number}",
    "negative-size": "event of negative size",
    "record-cut-off": "record cut off by the end of its buffer",
    "garbage": "no record",
    "junk-between": "bytes between buffers",
    "buffer-cut-off": "the buffer's length exceeds the file; read to the end of the file",
    "no-new-buffer": "buffer without a NewBuffer record: its thread is not known (0 is shown)",
    "no-end-of-buffer": "buffer without an EndOfBuffer record",
    "empty-preamble": "buffer with only its preamble",
    "unknown-record-type": "record of unknown type {number}",
    "stray-argument": "argument that belongs to no call",
    "archive-damaged": "the compressed data ends here or is damaged; everything before it is used",
    "trailing-bytes": "bytes after the last whole record",
    "buffer-too-long": "the buffer's length is too large; read up to the next buffer",
    "buffer-too-short": "the buffer's length is too small; read up to the next buffer",
    "buffer-inside": "another buffer begins inside this one, which ends here",
    "no-extents": "a buffer without a BufferExtents record; read up to the next buffer",
    "stray-preamble": "{record} record inside a buffer",
    "no-buffer-size": "no buffer size in the header; buffers are recognised by their first records",
}
#: problems that lose something although no bytes were skipped
LOSSY = (
    "record-cut-off", "buffer-cut-off", "buffer-too-long", "buffer-inside", "no-extents",
    "archive-damaged",
)  # fmt: skip
#: metadata records by number, if a text names them
RECORDS = {0: "NewBuffer", 4: "WallTime", 9: "Pid"}
#: limit of the lines shown; one more line counts the rest
MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of one log."""

    problems: Sequence[RawProblem]
    n_problems: int
    n_skipped_bytes: int

    @property
    def is_lossy(self) -> bool:
        """Tell whether some part of the file could not be used."""
        return self.n_skipped_bytes > 0 or any(p[0] in LOSSY for p in self.problems)


def describe(damage: Damage, name: str) -> Iterator[str]:
    """Yield a line for each problem up to a limit, and one for the rest."""
    for kind, offset, skipped, number in damage.problems[:MAX_SHOWN]:
        text = TEXTS[kind].format(number=number, record=RECORDS.get(number))
        lost = f"; {skipped} bytes skipped" if skipped else ""
        yield f"{name}: offset {offset}: {text}{lost}"
    more = damage.n_problems - min(len(damage.problems), MAX_SHOWN)
    if more:
        yield f"{name}: {more} more problems; {damage.n_skipped_bytes} bytes skipped in all"
