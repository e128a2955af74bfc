# SPDX-License-Identifier: Apache-2.0
"""The limits of resources that etrace was started with, setrlimit(2), for the command of a build.

The launcher raises its own and leaves the original ones in a variable (native/capture/rlimits.h).
"""

from __future__ import annotations

import contextlib
import os
import resource

from etrace.errors import CaptureError

VARIABLE = "ETRACE_LIMITS"
#: what a tracer needs that runs with the limits of the build: the unit and option of `ulimit`, too
NEEDS = {
    resource.RLIMIT_AS: (32 << 20, "memory", "v", 1024),
    resource.RLIMIT_DATA: (16 << 20, "data", "d", 1024),
    resource.RLIMIT_NOFILE: (16, "open files", "n", 1),
    resource.RLIMIT_CPU: (600, "CPU time", "t", 1),
}


def original() -> dict[int, tuple[int, int]]:
    """Return the limits that the launcher raised: resource -> (soft, hard)."""
    found = {}
    for limit in os.environ.get(VARIABLE, "").split():
        with contextlib.suppress(ValueError):
            number, soft, hard = map(int, limit.split(":"))
            found[number] = (_signed(soft), _signed(hard))
    return found


def restore() -> None:
    """Set the original limits, in the process that becomes the command."""
    for number, limits in original().items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(number, limits)
    os.environ.pop(VARIABLE, None)


def check(tracer: str) -> None:
    """Refuse a tracer that would run with the original limits, where they are too low for it."""
    for number, (soft, _) in original().items():
        needed, what, option, unit = NEEDS.get(number, (0, "", "", 1))
        if soft != resource.RLIM_INFINITY and soft < needed:
            raise CaptureError(
                f"the limit of {what} is too low for {tracer} (ulimit -{option} {soft // unit})",
                f"raise it to {needed // unit} or more, or leave --backend out",
            )


def _signed(value: int) -> int:
    """Return a limit as Python has it: -1 is RLIM_INFINITY, the largest number in C."""
    return value - (1 << 64) if value >= 1 << 63 else value
