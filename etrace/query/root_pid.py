# SPDX-License-Identifier: Apache-2.0
"""The process that the build began with."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.spec.database import NONE


def root_pid(image: Image) -> int:
    """Return the upid of the first process that no process of the trace started."""
    executions = image["executions"]
    roots = (row for row, parent in enumerate(executions["parent"]) if parent == NONE)
    row = min(roots, key=lambda row: executions["start_ns"][row], default=NONE)
    if row == NONE:
        raise EtraceError(f"{image.path}: no execution in it", "was anything traced?")
    return int(executions["upid"][row])
