# SPDX-License-Identifier: Apache-2.0
"""An image -> the pipes among its paths that are not files, and those that carry no data.

The ends of a pipe without a name are followed by descriptor (libetrace.trace.pipes), by whatever
name they are opened again. A jobserver passes tokens: it is the FIFO that make 4.4 hands on, or one
that several executions have opened for reading and writing.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

from libetrace.image.file import Image

TYPE_BITS, FIFO = 0x7C, 0x44
READS_WRITES, BOTH = (1, 2, 3, 3), 3  # by the access bits of an open
_UNNAMED = re.compile(rb"(?:/proc/[^/]+/fd/)?pipe:\[?[0-9]+\]?\Z")
_JOBSERVER = re.compile(rb"--jobserver-(?:auth|fds)=fifo:(\S+)")
#: variables that hand a jobserver on
_VARIABLES = b"MAKEFLAGS=", b"MFLAGS=", b"CARGO_MAKEFLAGS="
#: what GNU make calls its FIFO, in the directory of temporary files; it is gone when make ends
_GNU_MAKE = re.compile(rb"/GMfifo[0-9]+")


def find_tokens(image: Image) -> frozenset[int]:
    """Return the rows of paths whose opens say nothing of data."""
    found = set(_unnamed(image))
    found.update(path for path in _fifos(image) if _n_of_both(image, path) > 1)
    if image["strings"].n_rows:
        found.update(row for row in map(image.find_path, _jobservers(image)) if row >= 0)
        found.update(_gnu_make(image))
    return frozenset(found)


def _n_of_both(image: Image, path: int) -> int:
    """Return how many executions opened a path for reading and for writing."""
    opens, rows = image["opens"], image["path_opens"]["open"]
    ends: dict[int, int] = {}
    for at in image["paths"].span("opens.start", path):
        execution, access = opens["execution"][rows[at]], opens["mode"][rows[at]] & 3
        ends[execution] = ends.get(execution, 0) | READS_WRITES[access]
    return sum(end == BOTH for end in ends.values())


def _unnamed(image: Image) -> Iterator[int]:
    """Yield the rows of pipes without a name (`pipe:[4711]`)."""
    for prefix in (b"/proc/", b"pipe:"):
        for row in _starting(image, prefix):
            if _UNNAMED.match(image.path_string(row)):
                yield row


def _fifos(image: Image) -> Iterator[int]:
    modes = bytes(image["paths"]["mode"])
    for found in re.finditer(_modes_of_fifos(modes), modes, re.DOTALL):
        yield found.start()


def _modes_of_fifos(modes: bytes) -> bytes:
    fifos = {mode for mode in set(modes) if mode & TYPE_BITS == FIFO}
    return b"[" + b"".join(b"\\x%02x" % mode for mode in fifos) + b"]" if fifos else b"(?!)"


def _jobservers(image: Image) -> Iterator[bytes]:
    """Yield the FIFOs that the environment names."""
    for prefix in _VARIABLES:
        rows = range(image["strings"].n_rows)
        for row in rows[bisect.bisect_left(rows, prefix, key=image.string) :]:
            text = image.string(row)
            if not text.startswith(prefix):
                break
            yield from _JOBSERVER.findall(text)


def _gnu_make(image: Image) -> Iterator[int]:
    """Yield the rows of paths that are named like a FIFO of GNU make."""
    starts = image["strings"]["start"]
    for found in _GNU_MAKE.finditer(image["strings"]["bytes"]):
        row = bisect.bisect_right(starts, found.start()) - 1
        if found.end() == starts[row + 1]:
            path = image.find_path(image.string(row))
            if path >= 0:
                yield path


def _starting(image: Image, prefix: bytes) -> range:
    if not image.tables["strings"].n_rows:
        return range(0)
    rows = range(image["paths"].n_rows)
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    return range(*(bisect.bisect_left(rows, text, key=image.path_string) for text in (prefix, end)))
