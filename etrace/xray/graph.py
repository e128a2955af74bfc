# SPDX-License-Identifier: Apache-2.0
"""Call graphs: which function called which, how often, how long; what changed between two.

DOT for graphviz; its `dot` makes SVG of it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etrace.errors import EtraceError, UsageError
from etrace.xray.session import Session

#: the caller of functions without a caller
ROOT = -1
#: shown at a function that never returned
UNFINISHED = "not over"
LABELS = ("none", "count", "min", "med", "90p", "99p", "max", "sum")
DOT_HINT = "install graphviz, or use the DOT output"


@dataclass(frozen=True, slots=True)
class Figures:
    """Count, and times in seconds."""

    count: int
    minimum: float
    median: float
    percentile_90: float
    percentile_99: float
    maximum: float
    total: float

    def label(self, which: str) -> str:
        """Return the label of an edge or a node."""
        if which == "none":
            return ""
        if which == "count":
            return str(self.count)
        return show_seconds(self.value(which))

    def value(self, which: str) -> float:
        """Return one figure by its label."""
        if which not in LABELS[1:]:
            raise UsageError(f"no label {which!r}", f"there are: {', '.join(LABELS)}")
        return float(
            {
                "count": self.count, "min": self.minimum, "med": self.median,
                "90p": self.percentile_90, "99p": self.percentile_99, "max": self.maximum,
                "sum": self.total,
            }[which]
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Edges (caller | ROOT, callee) and functions, with their figures; names by id."""

    edges: Mapping[tuple[int, int], Figures]
    functions: Mapping[int, Figures]
    names: Mapping[int, str]
    native: Any

    @property
    def callers(self) -> set[int]:
        """Functions that called another one; those whose own calls never ended have no figures."""
        return {caller for caller, _ in self.edges if caller != ROOT}


def show_seconds(value: float) -> str:
    """Return a time with three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _figures(session: Session, row: Sequence[int]) -> Figures:
    seconds = session.clock.seconds
    return Figures(row[2], *(seconds(ticks) for ticks in row[3:9]))


def graph(session: Session, *, deduce: bool = False) -> CallGraph:
    """Return the call graph of a session's logs."""
    by_edge = session.account(by="edge", deduce=deduce)
    by_function = session.account(deduce=deduce)
    return CallGraph(
        {(row[1], row[0]): _figures(session, row) for row in by_edge.rows},
        {row[0]: _figures(session, row) for row in by_function.rows},
        {function: session.names.name(function) for function in by_function.functions},
        by_function,
    )


# ---- DOT ----


def quote(text: str) -> str:
    """Return a DOT string; line breaks are kept as such."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _shade(part: float) -> str:
    """Return a colour from pale to red for a fraction of the largest figure, as HSV."""
    return f"0.03 {0.05 + 0.85 * min(max(part, 0.0), 1.0):.3f} 1.000"


def _node_name(function: int) -> str:
    return "F0" if function == ROOT else f"F{function}"


def dot_lines(graph: CallGraph, edge_label: str, node_label: str, colour: str) -> Iterator[str]:
    """Yield the lines of a DOT file; `colour` is the figure that shades the functions."""
    yield "digraph xray {"
    yield '  node [shape=box style="rounded,filled" fontname="sans-serif" fillcolor=white];'
    yield '  edge [fontname="sans-serif" fontsize=10];'
    yield '  F0 [label="(start of threads)" style=dashed];'
    largest = (
        max((f.value(colour) for f in graph.functions.values()), default=0)
        if (colour != "none")
        else 0
    )
    for function in sorted(graph.functions.keys() | graph.callers):
        figures = graph.functions.get(function)
        figure = figures.label(node_label) if figures else UNFINISHED
        lines = [graph.names.get(function, f"#{function}"), figure]
        fill = _shade(figures.value(colour) / largest) if figures and largest else "white"
        label = quote("\n".join(filter(None, lines)))
        yield f'  {_node_name(function)} [label={label} fillcolor="{fill}"];'
    for (caller, callee), figures in sorted(graph.edges.items()):
        label = quote(figures.label(edge_label))
        yield f"  {_node_name(caller)} -> {_node_name(callee)} [label={label}];"
    yield "}"


# ---- two graphs ----


@dataclass(frozen=True, slots=True)
class Change:
    """A figure before and after; None if the edge or function is missing."""

    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """Return after / before, None when one of them is missing or 0."""
        if not self.before or self.after is None:
            return None
        return self.after / self.before

    def label(self, which: str) -> str:
        """Return `before -> after (+n %)`."""
        show = (lambda v: f"{v:.0f}") if which == "count" else show_seconds
        before = "new" if self.before is None else show(self.before)
        after = "gone" if self.after is None else show(self.after)
        ratio = f" ({(self.ratio - 1) * 100:+.1f} %)" if self.ratio is not None else ""
        return f"{before} -> {after}{ratio}"


def combine(all_figures: Sequence[Figures], which: str) -> float:
    """Return one figure for functions that share a name; percentiles are those of the busiest."""
    values = [figures.value(which) for figures in all_figures]
    if which in ("count", "sum"):
        return sum(values)
    if which in ("min", "max"):
        return min(values) if which == "min" else max(values)
    return max(all_figures, key=lambda figures: figures.count).value(which)


def _by_names(graph: CallGraph, which: str) -> dict[tuple[str, str], float]:
    """Return figures by names of caller and callee: ids differ between builds."""
    found: dict[tuple[str, str], list[Figures]] = {}
    names = graph.names
    for (caller, callee), figures in graph.edges.items():
        key = (names.get(caller, f"#{caller}") if caller != ROOT else "(start)", names[callee])
        found.setdefault(key, []).append(figures)
    return {key: combine(same, which) for key, same in found.items()}


def _functions_by_name(graph: CallGraph, which: str) -> dict[str, float]:
    found: dict[str, list[Figures]] = {}
    for function, figures in graph.functions.items():
        found.setdefault(graph.names[function], []).append(figures)
    return {name: combine(same, which) for name, same in found.items()}


def _colour(change: Change) -> str:
    if change.before is None:
        return "#9be89b" if change.after is not None else "#ffffff"
    if change.after is None:
        return "#cccccc"
    if change.ratio is None or abs(change.ratio - 1) < 0.01:
        return "#ffffff"
    return "#ffb3a7" if change.ratio > 1 else "#b3d9ff"


def diff_dot_lines(
    before: CallGraph, after: CallGraph, edge_label: str = "count", node_label: str = "sum"
) -> Iterator[str]:
    """Yield a DOT file of both graphs by function name: new green, gone grey, slower red."""
    left, right = _functions_by_name(before, node_label), _functions_by_name(after, node_label)
    callers = {one.names[caller] for one in (before, after) for caller in one.callers}
    names = sorted(left.keys() | right.keys() | callers)
    numbers = {name: i for i, name in enumerate(names, start=1)} | {"(start)": 0}
    yield "digraph xray_diff {"
    yield '  node [shape=box style="rounded,filled" fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif" fontsize=10];'
    yield '  F0 [label="(start of threads)" style=dashed];'
    for name in names:
        change = Change(left.get(name), right.get(name))
        shown = change.label(node_label) if name in left or name in right else UNFINISHED
        label = quote(f"{name}\n{shown}")
        yield f'  F{numbers[name]} [label={label} fillcolor="{_colour(change)}"];'
    edges, others = _by_names(before, edge_label), _by_names(after, edge_label)
    for key in sorted(edges.keys() | others.keys()):
        change = Change(edges.get(key), others.get(key))
        label = quote(change.label(edge_label))
        yield f"  F{numbers[key[0]]} -> F{numbers[key[1]]} [label={label}];"
    yield "}"


def render_svg(dot: str) -> bytes:
    """Run graphviz; EtraceError when it is not there or fails."""
    command = shutil.which("dot")
    if command is None:
        raise EtraceError("graphviz is not installed (command dot)", DOT_HINT)
    done = subprocess.run(
        [command, "-Tsvg"], input=dot.encode(errors="replace"), capture_output=True, check=False
    )
    if done.returncode:
        raise EtraceError(f"dot failed: {done.stderr.decode(errors='replace').strip()}", DOT_HINT)
    return done.stdout
