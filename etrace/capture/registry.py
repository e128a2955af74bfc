# SPDX-License-Identifier: Apache-2.0
"""The backends there are, in the order in which `auto` tries them."""

from __future__ import annotations

from etrace.capture.backend import Backend
from etrace.capture.ptrace import PtraceBackend
from etrace.errors import CaptureError

AUTO = "auto"
BACKENDS: tuple[Backend, ...] = (PtraceBackend(),)


def names() -> list[str]:
    """Names for the command line."""
    return [AUTO, *(b.name for b in BACKENDS)]


def choose(name: str) -> Backend:
    """Return the backend of that name; for `auto` the first that works.

    CaptureError, with every backend's reason, when none works.
    """
    if name != AUTO:
        return next(b for b in BACKENDS if b.name == name)
    reasons = []
    for backend in BACKENDS[:-1]:
        probe = backend.probe()
        if probe.works:
            return backend
        reasons.append(f"{backend.name}: {probe.reason}")
    if BACKENDS:
        return BACKENDS[-1]  # it says itself, and better, what stands in its way
    raise CaptureError("no backend works here: " + "; ".join(reasons), "etrace doctor says more")
