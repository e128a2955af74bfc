# SPDX-License-Identifier: Apache-2.0
"""How much there is in a database."""

from __future__ import annotations

from collections.abc import Mapping

from libetrace.image.file import Image

from etrace.query.binaries import binaries
from etrace.query.kinds import Kinds
from etrace.spec.database import NONE

CLONE_THREAD = 0x10000  # clone(2)


def n_processes(image: Image) -> int:
    """Return how many processes there are: a thread has a upid too, and is none."""
    children = image["children"]
    flagged = zip(children["upid"], children["flags"], strict=True)
    threads = {upid for upid, flags in flagged if flags & CLONE_THREAD}
    return len(set(image["executions"]["upid"]) - threads)


def stat(image: Image) -> Mapping[str, int | None]:
    """Return counts by name; None for what `cas pp` has not looked for yet."""
    executions, start = image["executions"], image["paths"]["opens.start"]
    kinds = Kinds(image)
    known = kinds.are_known
    n_opened = sum(start[i] != start[i + 1] for i in range(image["paths"].n_rows))
    return {
        "processes": n_processes(image),
        "execs": executions.n_rows,
        "execs_commands": sum(binary != NONE for binary in executions["binary"]),
        "execs_compilations": len(kinds.compilations) if known else None,
        "execs_linking": len(kinds.links) if known else None,
        "binaries": len(binaries(image)),
        "opens": image["opens"].n_rows,
        "paths": n_opened,
        "linked": image["linked"].n_rows if known else None,
        "linked_paths": len(kinds.linked_kind) if known else None,
        "compiled": image["compilations"].n_rows if known else None,
        "compiled_paths": len(kinds.compiled_type) if known else None,
        "patterns": image["patterns"].n_rows if "patterns" in image.tables else None,
    }
