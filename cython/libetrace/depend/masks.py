# SPDX-License-Identifier: Apache-2.0
"""Patterns -> masks: one byte for each path or execution, 1 where the dependency walk stops.

Patterns are globs as fnmatch(3) reads them without flags. Commands are the arguments joined by one
space (docs/dependencies.md). Before its first exec a process shows the arguments of its parent: it
is judged by the command that it becomes, so that excluding a command never takes the children of
that command along. A process that never executes anything is judged by what it shows.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Sequence

from libetrace.core.errors import Error
from libetrace.image.file import Image
from libetrace.select.commands import match_rows
from libetrace.select.patterns import PatternSet
from libetrace.select.windows_paths import has_windows_paths, matches_any

Patterns = Sequence[bytes]


def row_mask(n_rows: int, rows: Iterable[int]) -> bytearray:
    """Return a byte for each of `n_rows` rows, 1 for those named."""
    mask = bytearray(n_rows)
    for row in rows:
        mask[row] = 1
    return mask


def path_mask(image: Image, patterns: Patterns, *, negate: bool = False) -> bytearray:
    """Return a byte for each row of `paths`: 1 where some pattern matches the path.

    With `negate` where none does.
    """
    n_rows = image["paths"].n_rows
    if not patterns:
        return bytearray(n_rows)
    if has_windows_paths(image):
        return _negated(_windows_mask(image, patterns), negate)
    known = PatternSet(list(patterns))
    bits = match_rows(image, known, array("Q", range(n_rows + 1)), image["paths"]["string"])
    return _negated(_any_bit(bits, known.row_bytes), negate)


def _windows_mask(image: Image, patterns: Patterns) -> bytearray:
    holds = matches_any([os.fsdecode(pattern) for pattern in patterns])
    rows = range(image["paths"].n_rows)
    return bytearray(holds(os.fsdecode(image.path_string(row))) for row in rows)


def command_mask(
    image: Image, patterns: Patterns, numbers: Sequence[int] = (), *, negate: bool = False
) -> bytearray:
    """Return a byte for each row of `executions`: 1 where some pattern matches the command.

    `numbers` are those of precomputed patterns. With `negate` where no pattern matches.
    """
    mask = _number_mask(image, numbers)
    if patterns:
        mask = _either(mask, _known(image, patterns) or _matched(image, patterns))
    mask = _negated(mask, negate)
    _judge_by_what_follows(image, mask)
    return mask


def _matched(image: Image, patterns: Patterns) -> bytearray:
    known, start = PatternSet(list(patterns)), image["executions"]["argv.start"]
    bits = match_rows(image, known, start, image["arguments"]["string"])
    return _any_bit(bits, known.row_bytes)


def _either(first: bytearray, second: bytearray) -> bytearray:
    found = int.from_bytes(first, "little") | int.from_bytes(second, "little")
    return bytearray(found.to_bytes(len(first), "little"))


def _negated(mask: bytearray, negate: bool) -> bytearray:
    return mask.translate(bytes([1, 0]) + bytes(254)) if negate else mask


def _hits(wanted: int) -> bytes:
    """Return for each byte 1 when it has one of the wanted bits: a table for `translate`."""
    return bytes(int(byte & wanted != 0) for byte in range(256))


def _any_bit(bits: bytearray | memoryview, row_bytes: int, chosen: bytes = b"") -> bytearray:
    """Return 1 for each row of `row_bytes` in which a bit (of `chosen`) is set.

    Column by column, each as one long number: a row costs no step of the interpreter.
    """
    found = 0
    for i, wanted in enumerate(chosen or b"\xff" * row_bytes):
        if wanted:
            column = bytes(bits[i::row_bytes]).translate(_hits(wanted))
            found |= int.from_bytes(column, "little")
    return bytearray(found.to_bytes(len(bits) // row_bytes, "little"))


def _n_precomputed(image: Image) -> int:
    has_bits = {"patterns", "pattern_bits"} <= image.tables.keys()
    return image["patterns"].n_rows if has_bits else 0


def _known(image: Image, patterns: Patterns) -> bytearray | None:
    """Return the mask from the bits of `cas pp`, None unless it has every pattern."""
    if not _n_precomputed(image):
        return None
    number = {image.string(row): i for i, row in enumerate(image["patterns"]["string"])}
    if not all(pattern in number for pattern in patterns):
        return None
    return _number_mask(image, [number[pattern] for pattern in patterns])


def _number_mask(image: Image, numbers: Sequence[int]) -> bytearray:
    """Return the mask of some precomputed patterns; Error for one that the image lacks."""
    n_patterns = _n_precomputed(image)
    chosen = bytearray(-(-n_patterns // 8))
    for number in numbers:
        if not 0 <= number < n_patterns:
            known = f"{number} of {n_patterns}"
            raise Error(f"no precomputed command pattern {known}", "see pcp_list()")
        chosen[number // 8] |= 0x80 >> number % 8
    if not any(chosen):
        return bytearray(image["executions"].n_rows)
    return _any_bit(image["pattern_bits"]["bits"], len(chosen), bytes(chosen))


def _judge_by_what_follows(image: Image, mask: bytearray) -> None:
    upid, index = image["executions"]["upid"], image["executions"]["index"]
    for row in range(len(mask) - 1):
        if index[row] == 0 and upid[row + 1] == upid[row]:
            mask[row] = mask[row + 1]
