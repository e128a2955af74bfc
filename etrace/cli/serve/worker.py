# SPDX-License-Identifier: Apache-2.0
"""One question, answered in a forked process: it can be killed, and has limits.

The process has no descriptor of the server, may not write files or start programs, and ends by a
signal when it takes too long. That of a build has the image mapped already and opens only Python's
own modules; that of a fleet reads files.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import resource
import signal
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

import libetrace

import etrace
from etrace.cli.cas import program
from etrace.cli.serve.endpoints import PAGE_SIZE
from etrace.errors import EtraceError, NothingFoundError
from etrace.report import page

if TYPE_CHECKING:
    from libetrace.image.file import Image

MAX_MESSAGE_BYTES = 64 << 10
MEGA = 1 << 20
#: events of sys.addaudithook that no query may cause, and what it may not open a file for
_CHANGES = ("os.", "shutil.", "subprocess.", "socket.", "ctypes.", "signal.", "pty.")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may take; memory is beyond what the server has."""

    seconds: int = 60
    answer_bytes: int = 64 * MEGA
    memory_bytes: int = 4096 * MEGA


class TooLargeError(EtraceError):
    """The answer has more bytes than it may."""


class TooLongError(EtraceError):
    """The answer takes more time or memory than it may."""


class CrashedError(EtraceError):
    """The process of the question ended by a signal that is not a limit."""


#: prints the answer; returns the exit status
Question = Callable[[], int]


def query(image: Image, words: Sequence[str]) -> Question:
    """Return the question that `cas WORDS --json` answers."""
    run = partial(program.run_query, [*words, "--json"], image, PAGE_SIZE)
    return partial(_run, run, _refuse_files)


def report(image: Image) -> Question:
    """Return the question for the data of a report."""
    return partial(_run, partial(_write_report, image), _refuse_files)


def reading(body: Callable[[], str]) -> Question:
    """Return the question that a body answers, which may read files."""

    def run() -> int:
        sys.stdout.write(body())
        return 0

    return partial(_run, run, _refuse)


async def answer(question: Question, limits: Limits) -> bytes:
    """Return what a question prints. EtraceError; cancellation kills the process."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_query(question, limits, out_write, err_write)
    os.close(out_write)
    os.close(err_write)
    try:
        async with asyncio.timeout(limits.seconds), asyncio.TaskGroup() as group:
            out = group.create_task(_read(out_read, limits.answer_bytes))
            err = group.create_task(_read(err_read, MAX_MESSAGE_BYTES))
    except TimeoutError:
        _end(pid)
        raise TooLongError(f"no answer within {limits.seconds} s", "ask for less") from None
    except BaseExceptionGroup as group_error:
        _end(pid)
        raise group_error.exceptions[0] from None
    except BaseException:
        _end(pid)
        raise
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])  # it has closed both: it has ended
    if status < 0:
        raise _ended(-status, limits)
    return _checked(out.result(), err.result(), status)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)  # it is not reaped yet: the number is still its own
    os.waitpid(pid, 0)


def _ended(by: int, limits: Limits) -> EtraceError:
    """Return the error for the signal that ended a query."""
    if by == signal.SIGXCPU:
        return TooLongError(f"no answer within {limits.seconds} s of CPU time", "ask for less")
    if by == signal.SIGBUS:
        return CrashedError(
            "the database was truncated, or its disk cannot be read",
            "make it again (cas parse), then start etrace serve again",
        )
    if by == signal.SIGKILL:
        return TooLongError("the query was killed: the machine is short of memory", "ask for less")
    return CrashedError(
        f"the query crashed by {signal.Signals(by).name}", "please report it with the request"
    )


def _checked(out: bytes, err: bytes, status: int) -> bytes:
    """Return an answer that is whole; the error otherwise."""
    if out and status in (0, NothingFoundError.status):  # an answer without entries is one, too
        return out
    text = err.decode(errors="replace").strip()  # of argparse it begins with the usage
    message, _, hint = text.rpartition(": error: ")[2].partition("\n  hint: ")
    raise EtraceError(message or "no answer", hint)


async def _read(fd: int, limit: int) -> bytes:
    """Return all of a pipe and close it; TooLargeError beyond the limit."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(fd, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    parts, size = [], 0
    try:
        while part := await reader.read(1 << 16):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise TooLargeError(
                    f"the answer has more than {limit} bytes", "ask for fewer entries-per-page"
                )
    finally:
        transport.close()
    return b"".join(parts)


# ---- in the process ----


def _become_query(question: Question, limits: Limits, out: int, err: int) -> NoReturn:
    """Answer and end this process."""
    status = 1
    try:
        _restrict(limits, out, err)
        status = question()
        sys.stdout.flush()
    except SystemExit as end:  # argparse has said what is wrong
        status = end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001  a copy of the server must not go on
        with contextlib.suppress(OSError):
            os.write(2, f"cas: error: the query failed by {type(error).__name__}\n".encode())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(status)


def _restrict(limits: Limits, out: int, err: int) -> None:
    gc.disable()  # what the server has is not this process's to take apart
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, copy in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(fd, copy)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    _limit(resource.RLIMIT_CPU, limits.seconds, limits.seconds + 1)  # SIGXCPU, then SIGKILL
    _limit(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    _modules()


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    hard, most = soft if hard is None else hard, resource.getrlimit(which)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(which, (soft, hard))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * resource.getpagesize()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what changes anything; a hook of sys.addaudithook."""
    if event == "open":
        if arguments[2] & _WRITES:
            raise PermissionError(errno.EPERM, "a query writes no files", arguments[0])
    elif event.startswith(_CHANGES) and event not in {"os.listdir", "os.scandir"}:
        raise PermissionError(errno.EPERM, f"a query does nothing like {event}")


def _refuse_files(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what no query of an image does: it opens no files either."""
    if event == "open" and not _is_of_python(arguments[0]):
        raise PermissionError(errno.EPERM, "a query opens no files", arguments[0])
    _refuse(event, arguments)


def _is_of_python(name: object) -> bool:
    """Return whether a file belongs to modules, which may still be imported."""
    if not isinstance(name, str | bytes):
        return False
    return os.path.realpath(os.fsdecode(name)).startswith(_modules())


@cache
def _modules() -> tuple[str, ...]:
    """Return the folders of Python's modules and of ours, each with a slash at its end."""
    own = (os.path.dirname(each.__file__ or "") for each in (etrace, libetrace))  # noqa: PTH120
    python = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return tuple(os.path.realpath(each) + "/" for each in (*own, *python))


def _run(body: Callable[[], int], refuse: Callable[[str, tuple[Any, ...]], None]) -> int:
    from etrace.cli.ending import guarded

    sys.addaudithook(refuse)

    def nameless() -> int:
        """Run the body; errors of files do not say where these are on this machine."""
        try:
            return body()
        except OSError as error:
            raise EtraceError(f"the query failed: {error.strerror or 'a read error'}") from error

    return guarded("cas", nameless)


def _write_report(image: Image) -> int:
    sys.stdout.buffer.write(page.pack(image).deflated())
    return 0
