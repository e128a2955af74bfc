# SPDX-License-Identifier: Apache-2.0
"""The backends, and which of them `auto` takes."""

from __future__ import annotations

from etrace.capture.bpf.backend import BpfBackend
from etrace.capture.kmod.backend import KmodBackend
from etrace.capture.ptrace import PreloadBackend, PtraceBackend
from etrace.capture.strace import StraceBackend
from etrace.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from etrace.capture.backend import Backend

AUTO = "auto"
KMOD, BPF, PTRACE = KmodBackend(), BpfBackend(), PtraceBackend()
#: those that miss nothing, in the order in which `auto` tries them
COMPLETE: tuple[Backend, ...] = (KMOD, BPF, PTRACE)
#: those that record what programs write (docs/decisions/0072-what-commands-write.md)
KEEP_WRITTEN = (BPF.name, PTRACE.name)
#: those that have a buffer in the kernel
BUFFERED = (KMOD.name, BPF.name)
#: takes the place of the last one where that cannot work; it misses some events
SUBSTITUTE: Backend = PreloadBackend()
#: etrace-ptrace says the same when ptrace is refused to it
MISSES = "it misses static programs, and what libc opens for itself (docs/capture-preload.md)"
BACKENDS: tuple[Backend, ...] = (KMOD, BPF, PTRACE, SUBSTITUTE, StraceBackend())


def names() -> list[str]:
    """Names for the command line."""
    return [AUTO, *(b.name for b in BACKENDS)]


def choose(name: str, say: Callable[[str], None]) -> Backend:
    """Return the backend of that name; for `auto` the first that works.

    `say` gets the reason why a backend is not used, unless that is normal.

    The last one is not tried first: its own message is better. If all are certain to fail,
    CaptureError gives every reason before anything is written.
    """
    if name != AUTO:
        return _willing(next(b for b in BACKENDS if b.name == name))
    for backend in COMPLETE[:-1]:
        if backend.is_out_of_question():
            continue
        if backend.name == BPF.name:  # its program lets ptrace take over where the kernel refuses
            return backend
        probe = backend.probe()
        if probe.works:
            return backend
        if not probe.expected:
            say(f"{backend.name} is not used: {probe.reason}")
    return _last(say)


def _last(say: Callable[[str], None]) -> Backend:
    """Return the last complete backend, or its substitute when that alone is willing."""
    last = COMPLETE[-1]
    obstacle = last.obstacle()
    if obstacle is None:
        return last
    if SUBSTITUTE.obstacle() is not None:
        raise CaptureError(obstacle.reason, obstacle.hint)
    say(f"{last.name} is not used: {obstacle.reason}")
    say(f"{SUBSTITUTE.name} is used instead: {MISSES}")
    return SUBSTITUTE


def _willing(backend: Backend) -> Backend:
    if (obstacle := backend.obstacle()) is not None:
        raise CaptureError(obstacle.reason, obstacle.hint)
    return backend
