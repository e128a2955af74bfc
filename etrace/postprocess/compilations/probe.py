# SPDX-License-Identifier: Apache-2.0
"""A compiler on this machine -> the directories that it searches for headers by itself.

Runs `gcc OPTIONS -E -v -x c /dev/null` only when the user asked for it and only what trusted.py
lets through; the options are those that compiler_questions.py allows. Compilers that must not run,
are gone or were replaced since the build have no answer; the rest works without one
(docs/compilations.md).

They run in the sandbox (etrace/sandbox), in an empty directory, with an environment of four
variables. What they execute is in the folders of their own parts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from etrace.postprocess.compilations.trusted import trusted_compiler
from etrace.sandbox.programs import UntrustedError, opened
from etrace.sandbox.run import ROOT, Allowed, Ended, Limits, NoSandboxError, SandboxError, run
from etrace.threads import mapped

TIMEOUT_SECONDS = 20
MAX_BYTES = 1 << 20
#: clang 16 and later read a configuration named after their target, which may load plugins
ENVIRONMENT = {b"PATH": b"/usr/bin:/bin", b"LC_ALL": b"C", b"CLANG_NO_DEFAULT_CONFIG": b"1"}
#: folders with the parts of a compiler, beside that of its drivers: cc1, as, collect2
PARTS = ("lib", "lib32", "lib64", "libexec")
BINARIES = ("bin", "sbin")


def run_in_scratch(
    command: Sequence[bytes], timeout_seconds: int = TIMEOUT_SECONDS, owner: int = ROOT
) -> Ended | None:
    """Run a compiler by its own path; None when it could not run, took too long or too much.

    It may load code of `owner` besides root's. NoSandboxError.
    """
    path = Path(os.fsdecode(command[0]))
    allowed = Allowed(folders=tuple(_folders(path)), owner=owner)
    limits = Limits(timeout_seconds, output_bytes=MAX_BYTES)
    try:
        with opened(path) as program:
            return run(program, command[1:], None, ENVIRONMENT, allowed=allowed, limits=limits)
    except NoSandboxError:
        raise
    except (SandboxError, UntrustedError):
        return None


def _folders(path: Path) -> Iterator[Path]:
    yield path.parent
    if path.parent.name in BINARIES:
        prefix = path.parent.parent
        yield from (each for each in (prefix / name for name in PARTS) if each.is_dir())


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
        answers = zip(asked, mapped(self._run, asked.values(), self._jobs), strict=True)
        for number, (question, answer) in enumerate(answers):
            progress("compilers", number + 1, len(asked))
            if answer is not None:
                found[question] = answer
        return found

    def _run(self, command: Sequence[bytes]) -> Directories | None:
        try:
            return run_compiler(command)
        except NoSandboxError as error:
            self._say(error.message)
            return None

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
    command: Sequence[bytes], timeout_seconds: int = TIMEOUT_SECONDS
) -> Directories | None:
    """Run a compiler in a scratch directory and read its list; None when it gives none.

    NoSandboxError.
    """
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
