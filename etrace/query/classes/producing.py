# SPDX-License-Identifier: Apache-2.0
"""Executions -> which of them exist to make files of files: they compile, archive, link, copy.

All others (shells, make, configure's checks, what only reports) may stand between a file and what
it was made of as well, but a person who asks why means the first kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from libetrace.image.file import Image

from etrace.compilers.tools import load
from etrace.spec.database import NONE

#: programs that copy, rename or change a file as a whole
COPIERS = frozenset(b"cp mv ln install ginstall strip objcopy ranlib patchelf".split())


def incidental(image: Image) -> bytes:
    """Return a byte for each execution: 0 where it, or a driver that started it, produces.

    Before its first exec a process is what it becomes, or what its parent is.
    """
    executions = image["executions"]
    upid, index, parent = executions["upid"], executions["index"], executions["parent"]
    mask = bytearray(b"\1") * executions.n_rows
    own = _producing(image)
    for row in sorted(range(executions.n_rows), key=executions["start_ns"].__getitem__):
        above = parent[row]
        is_part = above != NONE and not mask[above]
        follows = row + 1 < executions.n_rows and upid[row + 1] == upid[row]
        becomes = row + 1 if index[row] == 0 and follows else row
        mask[row] = not (becomes in own or is_part)
    return bytes(mask)


def _producing(image: Image) -> set[int]:
    found = set(_known_programs(image))
    for table in ("linked", "compilations"):
        if table in image.tables:
            found.update(image[table]["execution"])
    return found


def _known_programs(image: Image) -> Iterator[int]:
    tools, executions = load(), image["executions"]
    arguments = image["arguments"]["string"]
    for row, binary in enumerate(executions["binary"]):
        if binary == NONE:
            continue
        path = image.path_string(binary)
        span = executions.span("argv.start", row)
        argv0 = image.string(arguments[span[0]]) if span else b""
        if path.rpartition(b"/")[2] in COPIERS or tools.identify(path, argv0) is not None:
            yield row
