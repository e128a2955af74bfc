# SPDX-License-Identifier: Apache-2.0
"""ninja's log of what compilers named (`deps = gcc`), `.ninja_deps` -> inputs by target.

The form is that of deps_log.cc of ninja 1.10 to 1.13: a first line, a version, and records of words
of 32 bits, little-endian. A record is a path, numbered in the order of the file, or a target with
its time and the numbers of its inputs. The last one of a target counts. Where the log is damaged,
ninja keeps what came before, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import unpack, unpack_from

from etrace.errors import EtraceError
from etrace.rules.dependency_files import data_of_file

NAME = ".ninja_deps"
FIRST_LINE = b"# ninjadeps\n"
VERSION = 4
#: of the size of a record: it is one of dependencies
DEPS = 1 << 31
MAX_RECORD_BYTES = (1 << 19) - 1
WORD = 4
MAX_BYTES = 1 << 30
#: target and the two halves of a time, before the inputs
N_BEFORE = 3


def read(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the inputs of each target; nothing without the file. EtraceError: another version."""
    try:
        data = data_of_file(path, MAX_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", "can ninja read it?") from error
    at = len(FIRST_LINE) + WORD
    if data[:at] != FIRST_LINE + VERSION.to_bytes(WORD, "little"):
        raise EtraceError(f"{path}: not a log of ninja 1.10 to 1.13", "build with one of these")
    names: list[str] = []
    found: dict[int, tuple[int, ...]] = {}
    for is_deps, record in _records(data, at):
        if is_deps:
            target, _, _, *inputs = unpack(f"<{len(record) // WORD}i", record)
            if not all(0 <= number < len(names) for number in (target, *inputs)):
                break
            found[target] = tuple(inputs)
        else:
            (checksum,) = unpack_from("<I", record, len(record) - WORD)
            if checksum != ~len(names) & 0xFFFFFFFF:
                break
            name = record[:-WORD].rstrip(b"\0")
            names.append(name.decode("utf-8", "surrogateescape"))
    return {
        names[target]: tuple(names[each] for each in inputs) for target, inputs in found.items()
    }


def _records(data: bytes, at: int) -> Iterator[tuple[bool, bytes]]:
    while at + WORD <= len(data):
        (size,) = unpack_from("<I", data, at)
        is_deps, size = bool(size & DEPS), size & ~DEPS
        at += WORD
        least = N_BEFORE * WORD if is_deps else 2 * WORD
        if size % WORD or not least <= size <= MAX_RECORD_BYTES or at + size > len(data):
            return
        yield is_deps, data[at : at + size]
        at += size
