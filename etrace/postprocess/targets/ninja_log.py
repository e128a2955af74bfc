# SPDX-License-Identifier: Apache-2.0
"""`.ninja_log` -> which outputs a command line made, and when.

Source: build_log.cc of ninja 1.11 (version 5), 1.12 (6) and 1.13 (7). After the line that names the
version, a line has five fields: start and end in milliseconds since ninja began to build, a time of
the output, its name, and the hash of the command in hexadecimal. The last line of an output counts.
The file may be anybody's: lines of another form are passed over, as ninja does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from libetrace.core.command_hash import murmur_hash, rapid_hash

NAME = b".ninja_log"
#: Chromium's has 10 MB
MAX_LOG_BYTES = 64 << 20
MAX_OUTPUTS = 1_000_000
#: a name that is longer than a path may be is none
MAX_NAME_BYTES = 4096
#: before a file of responses is hashed with a command
RESPONSES = b";rspfile="
_HEAD = re.compile(rb"# ninja log v(\d{1,4})\n")
_LINE = re.compile(rb"^(\d{1,10})\t(\d{1,10})\t-?\d{1,20}\t([^\t\n]+)\t([0-9a-f]{1,16})$", re.M)
HASHES: Mapping[int, Callable[[bytes], int]] = {5: murmur_hash, 6: murmur_hash, 7: rapid_hash}


@dataclass(frozen=True, slots=True)
class Edge:
    """A command that ninja ran; times in ms since ninja began to build."""

    start_ms: int
    end_ms: int
    outputs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class NinjaLog:
    """The edges of a log by the hash of their command."""

    hash_of: Callable[[bytes], int]
    edges: Mapping[int, Sequence[Edge]]

    def find(self, command: bytes) -> Sequence[Edge]:
        """Return the edges with this command."""
        return self.edges.get(self.hash_of(command), ())


def read_log(text: bytes) -> NinjaLog | None:
    """Return the edges of a log; None when its version is not known, or it has too many outputs."""
    head = _HEAD.match(text)
    hash_of = HASHES.get(int(head[1])) if head else None
    if head is None or hash_of is None:
        return None
    last: dict[bytes, tuple[int, int, int]] = {}
    for line in _LINE.finditer(text, head.end()):
        if len(line[3]) <= MAX_NAME_BYTES:
            last[line[3]] = int(line[4], 16), int(line[1]), int(line[2])
        if len(last) > MAX_OUTPUTS:
            return None
    outputs: dict[tuple[int, int, int], list[bytes]] = {}
    for name, key in last.items():
        outputs.setdefault(key, []).append(name)
    edges: dict[int, list[Edge]] = {}
    for (number, start_ms, end_ms), names in outputs.items():
        edges.setdefault(number, []).append(Edge(start_ms, end_ms, tuple(names)))
    return NinjaLog(hash_of, edges)
