# SPDX-License-Identifier: Apache-2.0
"""The cost of functions: counts, percentiles, inclusive and self time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etrace.errors import UsageError
from etrace.xray.clock import Clock
from etrace.xray.names import Names
from etrace.xray.session import Session

#: llvm-xray's columns, then ours
SORT_KEYS = (
    "funcid", "count", "min", "med", "90p", "99p", "max", "sum", "self", "func", "thread",
)  # fmt: skip
#: value of `thread` in rows for all threads
ALL_THREADS = -1


@dataclass(frozen=True, slots=True)
class FunctionAccount:
    """One function (of one thread, when asked so). Times are ticks."""

    function: int
    name: str
    count: int
    minimum: int
    median: int
    percentile_90: int
    percentile_99: int
    maximum: int
    total: int
    self_total: int
    process: int = ALL_THREADS
    thread: int = ALL_THREADS


@dataclass(frozen=True, slots=True)
class Report:
    """Accounts of all functions, and counts of incomplete calls."""

    rows: Sequence[FunctionAccount]
    clock: Clock
    n_calls: int
    n_unmatched_exits: int
    n_deduced: int
    n_unfinished: int
    n_backwards: int
    native: Any


def _make(row: Any, names: Names, threads: Sequence[tuple[int, int, int]]) -> FunctionAccount:
    function, thread, count, low, median, p90, p99, high, total, own = row
    _, process, number = threads[thread] if thread >= 0 else (0, ALL_THREADS, ALL_THREADS)
    name = names.name(function)
    figures = (count, low, median, p90, p99, high, total, own)
    return FunctionAccount(function, name, *figures, process, number)


def _key(name: str) -> Any:
    places = {
        "funcid": "function", "count": "count", "min": "minimum", "med": "median",
        "90p": "percentile_90", "99p": "percentile_99", "max": "maximum", "sum": "total",
        "self": "self_total", "func": "name", "thread": "thread",
    }  # fmt: skip
    if name not in places:
        raise UsageError(f"--sort {name}: no such column", f"there are: {', '.join(SORT_KEYS)}")
    return lambda row: getattr(row, places[name])


def account(
    session: Session,
    *,
    by_thread: bool = False,
    deduce: bool = False,
    sort: str = "funcid",
    descending: bool = False,
    top: int | None = None,
) -> Report:
    """Account for the calls of a session's logs; return the first `top` of the sorted rows."""
    by = "thread" if by_thread else "function"
    key = _key(sort)
    native = session.account(by=by, deduce=deduce)
    rows = [_make(row, session.names, native.threads) for row in native.rows]
    rows.sort(key=lambda row: (row.function, row.process, row.thread))
    rows.sort(key=key, reverse=descending)
    return Report(
        rows[:top],
        session.clock,
        native.n_calls,
        native.n_unmatched_exits,
        native.n_deduced,
        native.n_unfinished,
        native.n_backwards,
        native,
    )
