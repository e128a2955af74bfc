# SPDX-License-Identifier: Apache-2.0
"""A compiler on this machine -> the directories that it searches for headers by itself.

Runs `gcc OPTIONS -E -v -x c /dev/null` in a scratch directory (etrace/postprocess/scratch.py); the
options name no file of the build but its sysroot. Answers are kept in the user's cache for as long
as the compiler stays the same file. What must not be run, is gone or was replaced since the build
has no answer; all else works without one (docs/compilations.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etrace.postprocess.scratch import TIMEOUT_SECONDS, may_run, run_in_scratch

QUOTE_START = b'#include "..." search starts here:'
BRACKET_START = b"#include <...> search starts here:"
END = b"End of search list."
#: changes when the answer of an unchanged compiler would be another
CACHE_VERSION = 1
Directories = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One way to call a compiler: `options` are those that change its directories."""

    binary: bytes
    language: str
    options: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a file was: another one at the same path differs in it."""

    path: str
    inode: int
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> Fingerprint:
        """Take it of a file, through links; OSError."""
        status = path.stat()
        return cls(os.fspath(path.resolve()), status.st_ino, status.st_size, status.st_mtime_ns)


class Prober:
    """Asks compilers, several at once, and remembers.

    `built_ns` is when the build was over (0: unknown): a compiler that changed since is not asked.
    """

    def __init__(self, jobs: int, built_ns: int = 0, cache: Path | None = None) -> None:
        self._jobs = max(1, jobs)
        self._built_ns = built_ns
        self._cache = user_cache() if cache is None else cache

    def ask(
        self, questions: Iterable[Question], progress: Callable[[str, int, int], None]
    ) -> dict[Question, Directories]:
        """Return the answers that could be had; a question without one is left out."""
        asked = list(dict.fromkeys(questions))
        found = {}
        with ThreadPoolExecutor(self._jobs) as pool:
            for number, answer in enumerate(pool.map(self._answer, asked)):
                progress("compilers", number + 1, len(asked))
                if answer is not None:
                    found[asked[number]] = answer
        return found

    def _answer(self, question: Question) -> Directories | None:
        path = Path(os.fsdecode(question.binary))
        try:
            fingerprint = Fingerprint.of(path)
            changed_ns = path.stat().st_ctime_ns
        except (OSError, ValueError):
            return None
        if (self._built_ns and changed_ns > self._built_ns) or not may_run(path):
            return None
        place = self._cache / f"{_digest(question, fingerprint)}.json"
        answer = _remembered(place)
        if answer is None:
            answer = run_compiler(question)
            if answer is not None:
                _remember(place, question, answer)
        return answer


# ---- asking ----


def command_line(question: Question) -> list[bytes]:
    """Return the command that makes a compiler name its directories."""
    language = question.language.encode()
    return [question.binary, *question.options, b"-E", b"-v", b"-x", language, b"/dev/null"]


def run_compiler(
    question: Question, timeout_seconds: float = TIMEOUT_SECONDS
) -> Directories | None:
    """Run a compiler in a scratch directory and read its list; None when it gives none."""
    ended = run_in_scratch(command_line(question), timeout_seconds)
    return None if ended is None else search_list(ended.stderr)


def search_list(output: bytes) -> Directories | None:
    """Read the directories of `-v`, quote directories too; None when there is no whole list."""
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


# ---- remembering ----


def user_cache() -> Path:
    """Return where answers are kept: `$XDG_CACHE_HOME/etrace/compilers`."""
    base = os.environ.get("XDG_CACHE_HOME")
    if not base:
        with suppress(RuntimeError):  # nobody's home
            return Path.home() / ".cache" / "etrace" / "compilers"
    return Path(base or tempfile.gettempdir()) / "etrace" / "compilers"


def _digest(question: Question, fingerprint: Fingerprint) -> str:
    parts = (
        str(CACHE_VERSION).encode(),
        repr(fingerprint).encode("utf-8", "surrogateescape"),
        question.language.encode(),
        question.binary,
        *question.options,
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _remembered(place: Path) -> Directories | None:
    try:
        raw: Any = json.loads(place.read_bytes())
        directories = raw["directories"]
        if all(isinstance(each, str) for each in directories):
            return tuple(os.fsencode(each) for each in directories)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _remember(place: Path, question: Question, answer: Directories) -> None:
    """Keep an answer; a cache that cannot be written costs only time."""
    content: Mapping[str, Any] = {
        "binary": os.fsdecode(question.binary),
        "language": question.language,
        "options": [os.fsdecode(each) for each in question.options],
        "directories": [os.fsdecode(each) for each in answer],
    }
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = place.with_suffix(f".{os.urandom(4).hex()}")
        temporary.write_text(json.dumps(content))
        temporary.replace(place)
