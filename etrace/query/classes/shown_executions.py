# SPDX-License-Identifier: Apache-2.0
"""A database -> the executions that a person counts: programs that ran, processes that ran none.

What a process does before its first program belongs to that program, and what a thread does before
it executes belongs to the process that cloned it (libetrace.depend.threads).
"""

from __future__ import annotations

from libetrace.depend.threads import find_thread_owners
from libetrace.image.file import Image

from etrace.spec.database import NONE


def shown_executions(image: Image) -> list[int]:
    """Return rows of `executions`, ascending."""
    executions, owner = image["executions"], find_thread_owners(image)
    upid, binary = executions["upid"].tolist(), executions["binary"].tolist()
    after = [*upid[1:], None]
    return [
        row for row in range(executions.n_rows)
        if binary[row] != NONE or (upid[row] != after[row] and owner[row] == row)
    ]  # fmt: skip
