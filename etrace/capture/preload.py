# SPDX-License-Identifier: Apache-2.0
"""The backend for where ptrace is refused: drives etrace-preload (docs/capture-preload.md)."""

from __future__ import annotations

from etrace.capture.ptrace import PtraceBackend, program
from etrace.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from etrace.capture.backend import Probe

PROGRAM = "etrace-preload"


class PreloadBackend(PtraceBackend):
    """A library in every program (LD_PRELOAD), driven as the tracer of the ptrace backend is."""

    name = "preload"
    description = "a library in every program; misses static programs"
    program = PROGRAM

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: the program is missing."""
        from etrace.capture.backend import Probe

        try:
            program(PROGRAM)
        except CaptureError as error:
            return Probe(False, error.message, error.hint)
        return None
