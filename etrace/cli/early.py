# SPDX-License-Identifier: Apache-2.0
"""The start of a program, before its command is known: imports that take milliseconds.

Nothing has been written or changed yet. An interrupt ends the program without a message, as it
ends a C program; in the bodies of commands it raises KeyboardInterrupt.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PROGRAMS = ("cas", "etrace", "etrace_parser", "unix-tracer")
SIGINT = 2
STDERR = 2
SIGNALLED = 128  #: status of a shell for a command that signal N ended: 128 + N
AGAIN_S = 0.01  #: until a signal that Python dropped is raised again
#: imports make 20,000 objects that stay; a search for garbage among them takes 15 M instructions
GC_THRESHOLD = 100_000

#: the C part of `signal`, which would import `enum`: a tenth of the whole start
_signal = __import__("_signal")


def open_missing() -> None:
    """Open /dev/null for closed descriptors 0 to 2, so that messages do not go into other files.

    A program that is executed finds them closed again.
    """
    for fd in range(STDERR + 1):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # print() would take standard output for it
        sys.stderr = open(STDERR, "w", closefd=False)  # noqa: SIM115  to the end


def die_of_interrupt() -> None:
    """Let Ctrl-C end this process without a message, unless it is ignored."""
    if is_program() and _signal.getsignal(SIGINT) is _signal.default_int_handler:
        _signal.signal(SIGINT, _signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, where cleanups have to run."""
    if is_program():
        sys.unraisablehook = raise_again
    if is_program() and _signal.getsignal(SIGINT) == _signal.SIG_DFL:
        _signal.signal(SIGINT, _signal.default_int_handler)


def raise_again(dropped: sys.UnraisableHookArgs) -> None:
    """Raise a signal again that came inside a callback, where Python drops every exception.

    Imports drop weak references all the time: such a callback is where a signal may well arrive.
    """
    error = dropped.exc_value
    if isinstance(error, KeyboardInterrupt):
        number = SIGINT
    elif isinstance(error, SystemExit) and isinstance(error.code, int) and error.code > SIGNALLED:
        number = error.code - SIGNALLED
    else:
        sys.__unraisablehook__(dropped)
        return
    _signal.signal(_signal.SIGALRM, lambda *_: _signal.raise_signal(number))
    _signal.setitimer(_signal.ITIMER_REAL, AGAIN_S)


def on_signal(number: int, handler: Callable[[int, FrameType | None], object]) -> None:
    """Set a handler as signal.signal() does."""
    _signal.signal(number, handler)


def end() -> None:
    """Prepare the end of a program: everything is written."""
    die_of_interrupt()
    if is_program() and "duckdb" not in sys.modules:  # which reports what is not freed
        gc.freeze()  # else Python looks for garbage three times


def is_program() -> bool:
    """Whether this process is one of the programs, and not another one that imported them."""
    return os.path.basename(sys.argv[0]) in PROGRAMS  # noqa: PTH119  pathlib is slow to import


def settle() -> None:
    """Begin a program."""
    die_of_interrupt()
    if is_program():
        open_missing()
        gc.set_threshold(GC_THRESHOLD)
