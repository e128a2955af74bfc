# SPDX-License-Identifier: Apache-2.0
"""How every command ends: errors as messages with a hint, and the exit status."""

from __future__ import annotations

import errno
import os
import sys

from etrace.cli import early
from etrace.cli.early import SIGNALLED
from etrace.errors import EtraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

SIGINT, SIGPIPE, SIGTERM = 2, 13, 15  #: the module `signal` is slow to import

OUTPUT = "standard output"
FULL_HINT = "free some space, or choose another place for the output"


def printable(text: str) -> str:
    """Return text with control characters escaped for a terminal; a path may hold any bytes."""
    text = text.encode(errors="surrogateescape").decode(errors="replace")
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str) -> str:
    """Return a text without line breaks, for a message about names that may have them."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def say(text: str) -> None:
    """Print on standard error; nothing when the user closed it (`2>&-`)."""
    if sys.stderr is not None:
        sys.stderr.write(printable(text))


def fail(program: str, error: EtraceError) -> int:
    """Print an error and its hint; returns the exit status."""
    say(f"{program}: error: {error.message}\n")
    if error.hint:
        say(f"  hint: {error.hint}\n")
    return error.status


def _flush() -> None:
    """Write what is still buffered. OSError names standard output, which has no file name."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from error


def _run(body: Callable[[], int]) -> int:
    """Run a body and write its output; --help and --version of argparse end by SystemExit."""
    try:
        status = body()
    except SystemExit:
        _flush()
        raise
    _flush()
    return status


def _drop_output() -> None:
    """Drop output that cannot be written: Python would try again at its end, and exit with 120."""
    try:
        _flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Exit through all cleanups, with the status that a shell gives the signal."""
    raise SystemExit(SIGNALLED + number)


def stop_on_sigterm() -> None:
    """Let SIGTERM exit through all cleanups."""
    early.on_signal(SIGTERM, stop)


def name_of(error: OSError) -> str:
    """Return the file that an error is about, empty without one."""
    name = error.filename
    return os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else str(name or "")


def guarded(program: str, body: Callable[[], int]) -> int:
    """Run a command's body; errors become a message and a status."""
    try:
        early.raise_on_interrupt()
        return _run(body)
    except EtraceError as error:
        return fail(program, error)
    except MemoryError:
        return fail(program, EtraceError("not enough memory", "use a machine with more memory"))
    except KeyboardInterrupt:
        say(f"{program}: interrupted\n")
        return SIGNALLED + SIGINT
    except BrokenPipeError:  # `| head`: nobody wants the rest
        return SIGNALLED + SIGPIPE
    except OSError as error:
        where = f"{name_of(error)}: " if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return fail(program, EtraceError(f"{where}{error.strerror}", FULL_HINT if full else ""))
    except Exception as error:
        library = sys.modules.get("libetrace.core.errors")  # loaded by those that may raise it
        if library is None or not isinstance(error, library.Error):
            raise
        return fail(program, EtraceError(error.message, error.hint))
    finally:
        _drop_output()
        early.end()  # shutdown must not fail
