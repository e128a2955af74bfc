# SPDX-License-Identifier: Apache-2.0
"""A comparison -> tables of text, from which text, Markdown and the page are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from etrace.figures import count, seconds, size
from etrace.query.failures import status_text
from etrace.report.comparison.build import BYTES, NS
from etrace.report.comparison.compare import Comparison, Cost, Figure, ModuleChange
from etrace.report.comparison.limits import Verdict

#: commands whose output is shown
N_QUOTED = 3
#: rows of a table unless all are asked for
N_ROWS = 10
TITLES = {
    "wall": "wall time", "cpu": "CPU time", "critical-path": "critical path",
    "size": "size of linked modules", "dependencies": "dependencies of them",
    "commands": "commands", "failed": "failed commands",
}  # fmt: skip
LEAST_PART = 0.0005  # shown as 0.0 %
UNKNOWN = "-"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A table; `n_more` rows are left out. `note` says what the reader should know.

    `amounts` are what was added in each row, to draw it; `quoted` are lines that the build wrote.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_more: int = 0
    note: str = ""
    amounts: tuple[float, ...] = ()
    quoted: tuple[str, ...] = ()


def sections(found: Comparison, n_rows: int = N_ROWS) -> Iterator[Section]:
    """Yield the tables that have rows, the most important first."""
    table = partial(_table, n_rows=n_rows)
    yield _figures(found)
    for section in table(
        "Failed newly", ("command", "status", ""), found.failed, lambda each: (
            each.name, status_text(each.status).removeprefix("status "),
            "made the build fail" if each.is_cause else "",
        )
    ):  # fmt: skip
        yield replace(section, quoted=tuple(_quoted(found)))
    modules = [module for module in found.modules if module.is_changed]
    yield from table(
        "Linked modules", ("module", "size", "dependencies", "headers"), modules, _module
    )
    yield from table("Built newly", ("file",), found.built, lambda name: (name,))
    yield from table("No longer built", ("file",), found.no_longer_built, lambda name: (name,))
    costs = partial(_costs, found, n_rows=n_rows)
    yield from costs("Programs", "program", found.programs, with_counts=True)
    yield from costs("Targets", "target", found.targets, with_counts=True)
    if found.is_noise_known:
        yield from costs("Slower commands", "command", found.changed(1))
        yield from costs("Faster commands", "command", found.changed(-1))
    else:
        yield from costs("Commands whose time differs most", "command", found.costs)
    for title, alone, side in (
        ("Commands that ran newly", found.new, 1), ("Commands that ran no longer", found.gone, 0),
    ):  # fmt: skip
        head = ("command", "times", found.times)
        yield from table(title, head, alone, partial(_alone, side=side))
    of_headers = ("header", "read by all compilations", "change", "compile time", "error")
    yield from table("Headers", of_headers, found.headers, lambda each: (
        each.path.decode(errors="surrogateescape"), size(each.after),
        _signed(BYTES, each.after - each.before),
        UNKNOWN if each.ns is None else _signed(NS, each.ns),
        UNKNOWN if each.noise is None else f"±{value(NS, each.noise)}"))  # fmt: skip


def _table(
    title: str, head: tuple[str, ...], all_rows: Iterable[T], cells: Callable[[T], tuple[str, ...]],
    n_rows: int, note: str = "", amounts: Sequence[float] = (),
) -> Iterator[Section]:  # fmt: skip
    rows = list(all_rows)
    if rows:
        shown = tuple(cells(row) for row in rows[:n_rows])
        yield Section(title, head, shown, len(rows) - len(shown), note, tuple(amounts[:n_rows]))


def _quoted(found: Comparison) -> Iterator[str]:
    """Yield what the first commands that made the build fail wrote last."""
    for failure in [each for each in found.failed if each.written][:N_QUOTED]:
        yield f"{failure.name} wrote last:"
        yield from (f"  {line}" for line in failure.written)


def _figures(found: Comparison) -> Section:
    is_known = found.is_noise_known
    head = ("", "before", "after", "change", *(("noise",) if is_known else ()))
    rows = tuple(
        (TITLES[name], value(figure.unit, figure.before), value(figure.unit, figure.after),
         change(figure), *((_noise(figure),) if is_known else ()))
        for name, figure in found.figures.items()
    )  # fmt: skip
    note = "one run of each build: changes of times may be noise (--runs)"
    if is_known:
        slower, faster = (len(found.changed(sign)) for sign in (1, -1))
        n = count(sum(cost.n[1] for cost in found.costs), "command")
        note = f"of {n} of both builds {slower:,} slower and {faster:,} faster beyond the noise"
    return Section("", head, rows, note=note)


def _costs(
    found: Comparison, title: str, what: str, costs: Sequence[Cost], n_rows: int,
    *, with_counts: bool = False,
) -> Iterator[Section]:  # fmt: skip
    is_known = found.is_noise_known
    kept = [cost for cost in costs if cost.time.change and not cost.time.is_noise]
    n_noise = sum(cost.time.is_noise for cost in costs)
    head = (
        what,
        *(("times",) if with_counts else ()),
        f"{found.times} before", "after", "change", *(("noise",) if is_known else ()),
    )  # fmt: skip

    def cells(cost: Cost) -> tuple[str, ...]:
        times = (value(NS, cost.time.before), value(NS, cost.time.after), change(cost.time))
        counts = (_counts(cost.n),) if with_counts else ()
        name = cost.name if with_counts or cost.n[1] == 1 else f"{cost.name}  ({cost.n[1]} times)"
        return name, *counts, *times, *((_noise(cost.time),) if is_known else ())

    note = f"{n_noise:,} within the noise" if n_noise else ""
    amounts = [cost.time.change or 0 for cost in kept]
    yield from _table(title, head, kept, cells, n_rows, note, amounts)


def _counts(n: tuple[int, int]) -> str:
    return f"{n[1]:,}" if n[0] == n[1] else f"{n[0]:,} -> {n[1]:,}"


def _alone(cost: Cost, side: int) -> tuple[str, ...]:
    time = cost.time.after if side else cost.time.before
    return cost.name, f"{cost.n[side]:,}", value(NS, time)


def _module(module: ModuleChange) -> tuple[str, ...]:
    return module.name, *map(_pair, (module.size, module.dependencies, module.headers))


def _pair(figure: Figure) -> str:
    """Return both values in one cell."""
    before, after = (value(figure.unit, n) for n in (figure.before, figure.after))
    if figure.before is None or figure.after is None:
        return f"{before} -> {after}" if before != after else UNKNOWN
    return after if not figure.change else f"{before} -> {after} ({_part(figure)})"


def value(unit: str, n: float | None) -> str:
    """Return a number with its unit."""
    if n is None:
        return UNKNOWN
    return seconds(round(n)) if unit == NS else size(round(n)) if unit == BYTES else f"{n:,.0f}"


def change(figure: Figure) -> str:
    """Return `+1.200 s (+12.0 %)`."""
    if figure.change is None:
        return UNKNOWN
    if not figure.change:
        return "="
    return f"{_signed(figure.unit, figure.change)} ({_part(figure)})"


def _part(figure: Figure) -> str:
    if not figure.before or figure.ratio is None:
        return "was 0"
    if 0 < abs(figure.ratio) < LEAST_PART:
        return f"{'+' if figure.ratio > 0 else '-'}0.0 %"
    return f"{figure.ratio:+.1%}".replace("%", " %")


def _signed(unit: str, n: float) -> str:
    return ("+" if n >= 0 else "-") + value(unit, abs(n))


def _noise(figure: Figure) -> str:
    return UNKNOWN if figure.noise is None else f"±{value(figure.unit, figure.noise)}"


def verdict(it: Verdict) -> str:
    """Return one line about a limit."""
    unit, figure = it.figure.unit, it.figure
    values = f"{value(unit, figure.before)} -> {value(unit, figure.after)} ({_part(figure)})"
    if it.is_noise:
        return f"{it.limit.text}: not exceeded, {values} is within the noise of {_noise(figure)}"
    return f"{it.limit.text}: {'exceeded' if it.is_exceeded else 'not exceeded'}, {values}"
