# SPDX-License-Identifier: Apache-2.0
"""A compiler on this machine -> the directories that it searches for headers by itself.

Runs `gcc OPTIONS -E -v -x c /dev/null` only when the user asked for it and only what trusted.py
lets through; the options are those that compiler_questions.py allows. Compilers that must not run,
are gone or were replaced since the build have no answer; the rest works without one
(docs/compilations.md).

Programs run where they can do no harm: in an empty scratch directory that is removed again, with an
environment of four variables, no standard input, and a time limit for the program and all that it
started. Nothing else in etrace runs programs that a trace names.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from etrace.postprocess.compilations.trusted import UntrustedError, trusted_compiler

TIMEOUT_SECONDS = 20.0
MAX_BYTES = 1 << 20
#: clang 16 and later read a configuration named after their target, which may load plugins
NO_CONFIG = {"CLANG_NO_DEFAULT_CONFIG": "1"}


class Ended(NamedTuple):
    """How a program ended and what it printed, at most MAX_BYTES of each."""

    status: int
    stdout: bytes
    stderr: bytes


def run_in_scratch(
    command: Sequence[bytes], timeout_seconds: float = TIMEOUT_SECONDS
) -> Ended | None:
    """Run a command and return how it ended; None when it could not run or took too long."""
    with (
        tempfile.TemporaryDirectory(prefix="etrace-scratch-") as scratch,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        status = _run(command, scratch, (stdout, stderr), timeout_seconds)
        if status is None:
            return None
        for stream in (stdout, stderr):
            stream.seek(0)
        return Ended(status, stdout.read(MAX_BYTES), stderr.read(MAX_BYTES))


def _run(
    command: Sequence[bytes],
    scratch: str,
    outputs: tuple[IO[bytes], IO[bytes]],
    timeout_seconds: float,
) -> int | None:
    """Run a command to its end and return its status; everything that it started ends with it."""
    try:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": scratch, **NO_CONFIG},
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    try:
        return process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


QUOTE_START = b'#include "..." search starts here:'
BRACKET_START = b"#include <...> search starts here:"
END = b"End of search list."
Directories = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One way to call a compiler: `options` are those that change its directories."""

    binary: bytes
    language: str
    options: tuple[bytes, ...]


class Prober:
    """Runs compilers, several at once, and reports those that it runs and those that it does not.

    `built_ns` is when the build was over (0: unknown): a compiler that changed since is not asked.
    """

    def __init__(self, jobs: int, say: Callable[[str], None], built_ns: int = 0) -> None:
        self._jobs, self._say, self._built_ns = max(1, jobs), say, built_ns

    def ask(
        self, questions: Iterable[Question], progress: Callable[[str, int, int], None]
    ) -> dict[Question, Directories]:
        """Return the available answers; questions without one are left out."""
        asked = {each: command_line(each, path) for each, path in self._allowed(questions)}
        for command in asked.values():
            self._say(f"runs {shown(command)}")
        found = {}
        with ThreadPoolExecutor(self._jobs) as pool:
            answers = zip(asked, pool.map(run_compiler, asked.values()), strict=True)
            for number, (question, answer) in enumerate(answers):
                progress("compilers", number + 1, len(asked))
                if answer is not None:
                    found[question] = answer
        return found

    def _allowed(self, questions: Iterable[Question]) -> list[tuple[Question, Path]]:
        allowed, refused = [], dict[str, None]()
        for question in dict.fromkeys(questions):
            try:
                allowed.append((question, self._check(question)))
            except UntrustedError as error:
                refused[f"does not run {os.fsdecode(question.binary)}: {error}"] = None
        for text in refused:
            self._say(text)
        return allowed

    def _check(self, question: Question) -> Path:
        path = trusted_compiler(question.binary)
        if self._built_ns and path.stat().st_ctime_ns > self._built_ns:
            raise UntrustedError("it has changed since the build")
        return path


def command_line(question: Question, path: Path) -> list[bytes]:
    """Return the command that makes the compiler at `path` name its directories."""
    language = question.language.encode()
    return [
        os.fsencode(path), *question.options, b"-E", b"-v", b"-x", language, b"/dev/null",
    ]  # fmt: skip


def shown(command: Sequence[bytes]) -> str:
    """Return a command as a shell would take it."""
    return shlex.join(os.fsdecode(word) for word in command)


def run_compiler(
    command: Sequence[bytes], timeout_seconds: float = TIMEOUT_SECONDS
) -> Directories | None:
    """Run a compiler in a scratch directory and read its list; None when it gives none."""
    ended = run_in_scratch(command, timeout_seconds)
    return None if ended is None else search_list(ended.stderr)


def search_list(output: bytes) -> Directories | None:
    """Read the directories of `-v`, quote directories too; None when the list is incomplete."""
    directories: list[bytes] = []
    is_list = False
    for line in output.splitlines():
        if line in (QUOTE_START, BRACKET_START):
            is_list = True
        elif line == END:
            return tuple(directories)
        elif is_list and line.startswith(b" "):
            directories.append(line[1:].removesuffix(b" (framework directory)"))
    return None
