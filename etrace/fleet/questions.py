# SPDX-License-Identifier: Apache-2.0
"""The questions of `etrace fleet query`: one file of SQL each, in queries/.

A file begins with comments: what it answers, then a line for each parameter, `-- NAME: meaning`.
Both engines run the same text. Values are bound to `:name`; none is ever pasted into it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from etrace.alike import suggestion
from etrace.errors import UsageError

FOLDER = Path(__file__).with_name("queries")
_PARAMETER = re.compile(r"-- ([A-Z_]+): (.+)")
_MARK = re.compile(r":([a-z_]+)\b")


@dataclass(frozen=True, slots=True)
class Question:
    """A question; `parameters` are (name, meaning) in the order of the command line."""

    name: str
    summary: str
    parameters: tuple[tuple[str, str], ...]
    sql: str

    @property
    def usage(self) -> str:
        """The words of the command line."""
        return " ".join([self.name, *(name.upper() for name, _ in self.parameters)])

    def values(self, words: Sequence[str]) -> dict[str, str]:
        """Return the values of the parameters. UsageError for too few or too many."""
        if len(words) != len(self.parameters):
            raise UsageError(f"{self.name} takes {len(self.parameters)}", f"usage: {self.usage}")
        return {name: word for (name, _), word in zip(self.parameters, words, strict=True)}

    @property
    def for_duckdb(self) -> str:
        """The statement with the marks of DuckDB."""
        return _MARK.sub(r"$\1", self.sql)


def _read(path: Path) -> Question:
    comments: list[str] = []
    rest: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        (comments if line.startswith("--") and not rest else rest).append(line)
    parameters = tuple(
        (found[1].lower(), found[2]) for line in comments if (found := _PARAMETER.fullmatch(line))
    )
    return Question(path.stem, comments[1].removeprefix("-- "), parameters, "\n".join(rest))


@cache
def questions() -> dict[str, Question]:
    """Return all questions by name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.sql"))}


def question(name: str) -> Question:
    """Return a question. UsageError for an unknown one."""
    found = questions().get(name)
    if found is None:
        raise UsageError(f"no query {name!r}; {suggestion(name, list(questions()))}",
                         "etrace fleet query --list")  # fmt: skip
    return found
