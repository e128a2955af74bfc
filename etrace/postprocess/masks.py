# SPDX-License-Identifier: Apache-2.0
"""Patterns -> masks: one byte for each path or execution, 1 where the dependency walk stops.

Patterns are globs as fnmatch(3) reads them without flags. Commands are the arguments joined by one
space (seed 001, docs/dependencies.md). Before its first exec a process shows the arguments of its
parent: it is judged by the command that it becomes, so that excluding a command never takes the
children of that command along.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache

from libetrace.image.file import Image
from libetrace.select.patterns import PatternSet

Patterns = Sequence[bytes]


def path_mask(image: Image, patterns: Patterns) -> bytearray:
    """Return a byte for each row of `paths`: 1 where some pattern matches the path."""
    n_rows = image["paths"].n_rows
    if not patterns:
        return bytearray(n_rows)
    pattern_set = PatternSet(list(patterns))
    each = array("Q", range(n_rows + 1))
    return _any_bit(
        _bits(image, pattern_set, each, image["paths"]["string"]), pattern_set.row_bytes
    )


def command_mask(image: Image, patterns: Patterns, *, negate: bool = False) -> bytearray:
    """Return a byte for each row of `executions`: 1 where some pattern matches the command.

    With `negate` where none does.
    """
    executions = image["executions"]
    if not patterns:
        return bytearray(executions.n_rows)
    mask = _known(image, patterns)
    if mask is None:
        pattern_set = PatternSet(list(patterns))
        arguments = image["arguments"]["string"]
        bits = _bits(image, pattern_set, executions["argv.start"], arguments)
        mask = _any_bit(bits, pattern_set.row_bytes)
    if negate:
        mask = bytearray(not hit for hit in mask)
    _judge_by_what_follows(image, mask)
    return mask


def _bits(
    image: Image, patterns: PatternSet, start: memoryview | array[int], rows: memoryview
) -> bytearray:
    strings = image["strings"]
    return patterns.match_rows(strings["start"], strings["bytes"], start, rows)


@lru_cache(maxsize=256)
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


def _known(image: Image, patterns: Patterns) -> bytearray | None:
    """Return the mask from the bits of `cas pp`, None unless it has every pattern."""
    if not {"patterns", "pattern_bits"} <= image.tables.keys():
        return None
    number = {image.string(row): i for i, row in enumerate(image["patterns"]["string"])}
    if not all(pattern in number for pattern in patterns):
        return None
    row_bytes = -(-len(number) // 8)
    chosen = bytearray(row_bytes)
    for pattern in patterns:
        chosen[number[pattern] // 8] |= 0x80 >> number[pattern] % 8
    return _any_bit(image["pattern_bits"]["bits"], row_bytes, bytes(chosen))


def _judge_by_what_follows(image: Image, mask: bytearray) -> None:
    upid, index = image["executions"]["upid"], image["executions"]["index"]
    for row in range(len(mask) - 1):
        if index[row] == 0 and upid[row + 1] == upid[row]:
            mask[row] = mask[row + 1]
