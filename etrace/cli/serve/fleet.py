# SPDX-License-Identifier: Apache-2.0
"""A fleet of `etrace fleet`: what the server answers about it.

Nothing of it is opened in the server itself: each answer is made in a process of its own, which
lists the parts again, so a build that was added is in the next answer.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from etrace.cli.fleet.options import day
from etrace.cli.fleet.trends import record
from etrace.cli.serve import worker
from etrace.cli.serve.openapi import RANGE
from etrace.errors import EtraceError
from etrace.fleet import plot
from etrace.fleet.dataset import Range, open_dataset
from etrace.fleet.duck import Duck
from etrace.fleet.questions import Question, questions
from etrace.fleet.store import shown_place
from etrace.fleet.trends import FIGURES, trend

if TYPE_CHECKING:
    from etrace.fleet.dataset import Dataset
    from etrace.query.sql import Rows

#: of an answer; what is left out is said
MAX_ROWS = 10_000
_PROJECTS = (
    "SELECT project, COUNT(*) AS builds, MIN(date) AS first, MAX(date) AS last "
    "FROM builds GROUP BY project ORDER BY project"
)


class Fleet:
    """The fleet of a server; each method returns a question."""

    def __init__(self, place: str) -> None:
        self._place = place if "://" in place else os.path.abspath(place)  # noqa: PTH100
        self.place = shown_place(self._place)  #: without credentials, as errors have it
        self.name = PurePath(self.place).name or "fleet"

    def described(self) -> worker.Question:
        """Ask what there is: projects with their days, questions, figures."""

        def body() -> str:
            rows = _dicts(Duck(self._open()).ask(_PROJECTS))
            asked = [
                {"name": each.name, "summary": each.summary,
                 "parameters": [
                     {"name": name, "meaning": meaning} for name, meaning in each.parameters]}
                for each in questions().values()
            ]  # fmt: skip
            return _json(
                {"name": self.name, "projects": [*rows], "queries": asked, "figures": [*FIGURES]}
            )

        return worker.reading(body)

    def answered(self, asked: Question, given: Iterable[tuple[str, str]]) -> worker.Question:
        """Ask a question; its rows are those of `etrace fleet query --json`. EtraceError."""
        values, wanted = _parameters(given, [name for name, _ in asked.parameters])

        def body() -> str:
            duck = Duck(self._open(), wanted)
            rows = duck.ask(asked.for_duckdb, values, is_trusted=True)
            entries = [*islice(_dicts(rows), MAX_ROWS + 1)]
            is_cut = len(entries) > MAX_ROWS
            return _json({"columns": rows.columns, "is_cut": is_cut, "entries": entries[:MAX_ROWS]})

        return worker.reading(body)

    def trends(self, given: Iterable[tuple[str, str]]) -> worker.Question:
        """Ask for the trend of a figure, with its picture. EtraceError."""
        pairs = [*given]
        figure = dict(pairs).get("figure", "time")
        if figure not in FIGURES:
            raise EtraceError(f"figure: {figure!r} is not one of {', '.join(FIGURES)}")
        needed = ["of"] if "$of" in FIGURES[figure][0] else []
        values, wanted = _parameters(pairs, needed, ["figure"])

        def body() -> str:
            found = trend(self._open(), figure, values.get("of", ""), wanted)
            return _json({**record(found), "svg": plot.svg(found)})

        return worker.reading(body)

    def _open(self) -> Dataset:
        return open_dataset(self._place)


def _parameters(
    given: Iterable[tuple[str, str]], needed: Sequence[str], others: Sequence[str] = ()
) -> tuple[dict[str, str], Range]:
    """Return the values of a question and the builds that it is about. EtraceError."""
    values: dict[str, str] = {}
    projects: list[str] = []
    known = [*needed, *others, *(name for name, _ in RANGE)]
    for name, value in given:
        if name == "project":
            projects.append(value)
        elif name not in known:
            raise EtraceError(f"{name}: no such parameter", f"there are {', '.join(known)}")
        elif name in values:
            raise EtraceError(f"{name}: given twice", "give it once")
        else:
            values[name] = value
    missing = next((name for name in needed if name not in values), None)
    if missing is not None:
        raise EtraceError(f"{missing}: missing", f"add {missing}=VALUE")
    since, until = (_day(name, values.pop(name, "")) for name in ("since", "until"))
    return values, Range(tuple(projects), since, until)


def _day(name: str, text: str) -> str:
    try:
        return day(text) if text else ""
    except argparse.ArgumentTypeError as error:
        raise EtraceError(f"{name}: {error}") from error


def _dicts(rows: Rows) -> Iterator[dict[str, Any]]:
    return (dict(zip(rows.columns, row, strict=True)) for row in rows.rows)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
