# SPDX-License-Identifier: Apache-2.0
"""Filters -> the rows of opens and executions for which they hold, by libetrace.select.filters.

Here the parts of a filter become the conditions of the native engine: [[(name, value), ..], ..].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from libetrace.core import errors
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.rows.classes import product
from etrace.query.select.filters import Filter, FilterError, Part

Conditions = list[tuple[Any, ...]]
Rows = Sequence[int]
_PATH_TESTS = {"sp": "has_path", "wc": "wc", "re": "re"}
_TEXT_TESTS = {"sp": "has_str", "wc": "wc", "re": "re"}  # after bin_, cwd_, cmd_
_EXISTENCE = {"0": "file_not_exists", "1": "file_exists", "2": "dir_exists"}
#: what could read is what does not only write, and the other way round
_OTHER_ACCESS = {"r": "w", "w": "r"}
_CLASSES_OF_RUNS = {"binary"}  # of all others `cas pp` knows


def passing_opens(image: Image, filters: Iterable[Filter], rows: Rows) -> Rows:
    """Return those of `rows` (of `opens`) for which all filters hold, ascending."""
    from libetrace.select.filters import filter_opens  # noqa: PLC0415  most questions have no filter

    return _select(image, filters, rows, open_conditions, filter_opens)


def passing_executions(image: Image, filters: Iterable[Filter], rows: Rows) -> Rows:
    """Return those of `rows` (of `executions`) for which all filters hold, ascending."""
    from libetrace.select.filters import filter_executions  # noqa: PLC0415

    return _select(image, filters, rows, execution_conditions, filter_executions)


def _select(
    image: Image,
    filters: Iterable[Filter],
    rows: Rows,
    conditions_of: Callable[[Part], Conditions],
    engine: Callable[..., Rows],
) -> Rows:
    from libetrace.db.database import Database  # noqa: PLC0415

    database = Database.from_image(image)
    for of in filters:
        _check(image, of)
        groups = [
            [condition for part in parts for condition in _signed(part, conditions_of(part))]
            for parts in of.alternatives
        ]
        try:
            rows = engine(database, groups, rows)
        except (
            errors.FilterError
        ) as error:  # a value that the grammar takes and the engine does not
            raise EtraceError(error.message, "docs/queries.md says what a key takes") from error
    return rows


def _signed(part: Part, conditions: Conditions) -> Conditions:
    return [("not", conditions)] if part.is_on("negate") else conditions


def _check(image: Image, of: Filter) -> None:
    """Raise for a regular expression that is not one, and for products that are not made yet."""
    for part in (part for parts in of.alternatives for part in parts):
        for key in of.grammar.texts & part.values.keys():
            if part.type == "re":
                _check_expression(of, part, key)
        classes = set(part.values.get("class", "binary").split("|"))
        if classes - _CLASSES_OF_RUNS or "source_type" in part.values:
            product(image, "linked", "linked modules")
            product(image, "compilations", "compilations")


def _check_expression(of: Filter, part: Part, key: str) -> None:
    try:
        re.compile(part.values[key])
    except re.error as error:
        at = part.places[key] + (error.pos or 0)
        raise FilterError(of.grammar, of.text, at, f"bad regular expression: {error.msg}") from None


def open_conditions(part: Part) -> Conditions:
    """Return what the pairs of a part of `--filter` say, all of which must hold."""
    values = part.values
    found: Conditions = [
        (name, values[key])
        for key, name in (
            ("path", _PATH_TESTS[part.type]),
            ("class", "is_class"),
            ("source_type", "source_type"),
        )
        if key in values
    ]
    for key, name in (("access", "has_access"), ("global_access", "global_access")):
        if key in values:
            found.append(_access(name, values[key]))
    if "exists" in values:
        found.append((_EXISTENCE[values["exists"]], True))
    if "link" in values:
        found.append(("symlink" if part.is_on("link") else "no_symlink", True))
    if "source_root" in values:
        found.append((_root("", inside=part.is_on("source_root")), True))
    return found


def _access(name: str, value: str) -> tuple[Any, ...]:
    """Return the engine's condition, whose r, w and rw shut one another out."""
    if value in _OTHER_ACCESS:
        return ("not", [(name, _OTHER_ACCESS[value])])
    return (name, value.removesuffix("o"))


def execution_conditions(part: Part) -> Conditions:
    """Return what the pairs of a part of `--command-filter` say, all of which must hold."""
    values = part.values
    found: Conditions = []
    for key in ("bin", "cwd", "cmd"):
        if key in values:
            found.append((f"{key}_{_TEXT_TESTS[part.type]}", values[key]))
        if f"{key}_source_root" in values:
            found.append((_root(f"{key}_", inside=part.is_on(f"{key}_source_root")), True))
    if "class" in values:
        found.append(("is_class", values["class"]))
    if "ppid" in values:
        found.append(("has_ppid", int(values["ppid"])))
    return found


def _root(prefix: str, *, inside: bool) -> str:
    return f"{prefix}at_source_root" if inside else f"{prefix}not_at_source_root"
