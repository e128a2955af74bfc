# SPDX-License-Identifier: Apache-2.0
"""A trend -> a plot of characters, or an SVG picture. A line is a mean; a bar, a deviation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from etrace.fleet.trends import Trend

ROWS = 12
UNITS = {"bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")), "s": ((1, "s"), (1e-3, "ms"))}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 800, 320, 80, 40, 40
STYLE = (
    "text{font:12px sans-serif;fill:#333}.title{font-size:15px}.axis{stroke:#999}"
    ".bar{stroke:#7aa6d6;stroke-width:1.5}.dot{fill:#1f5fa8}.mean{stroke:#d9822b;stroke-width:2}"
    ".change{stroke:#c23030;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#777}}"
)


def number(value: float, unit: str) -> str:
    """Return a value with its unit: 12.3 s, 4.5 MB, 120 files."""
    for size, name in UNITS.get(unit, ()):
        if abs(value) >= size:
            return f"{value / size:.4g} {name}"
    return f"{value:.4g} {unit}".strip()


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    edge = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - edge, high + edge


def lines(trend: Trend, width: int) -> Iterator[str]:
    """Yield the lines of a plot: `*` is a mean, `|` a deviation, `^` a change."""
    room = max(10, width - 14)
    n = len(trend.points)
    columns = min(n, room)
    at = [[i for i in range(n) if i * columns // n == column] for column in range(columns)]
    means = [[trend.points[i].mean for i in own] for own in at]
    spread = [max((trend.points[i].deviation for i in own), default=0.0) for own in at]
    values = [m + s * d for own, d in zip(means, spread, strict=True) for m in own for s in (-1, 1)]
    low, high = _limits(values)
    cells = [[" "] * columns for _ in range(ROWS)]

    def row(value: float) -> int:
        return min(ROWS - 1, max(0, round((high - value) / (high - low) * (ROWS - 1))))

    for column, own in enumerate(means):
        for r in range(row(max(own) + spread[column]), row(min(own) - spread[column]) + 1):
            cells[r][column] = "|"
        for value in own:
            cells[row(value)][column] = "*"
    yield trend.title
    for r, line in enumerate(cells):
        value = high - (high - low) * r / (ROWS - 1)
        label = number(value, trend.unit) if r in (0, ROWS // 2, ROWS - 1) else ""
        yield f"{label:>12} {''.join(line)}".rstrip()
    if trend.changes:
        marks = {change.at * columns // n for change in trend.changes}
        yield f"{'':>12} {''.join('^' if c in marks else ' ' for c in range(columns))}".rstrip()


def svg(trend: Trend) -> str:
    """Return a picture; it has no script, and names are text."""
    values = [p.mean + s * p.deviation for p in trend.points for s in (-1, 1)]
    low, high = _limits(values)
    n = len(trend.points)

    def x(i: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (i + 0.5) / n

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
        return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'

    floor = HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="22">{_text(trend.title)}</text>',
        line("axis", LEFT, TOP, LEFT, floor), line("axis", LEFT, floor, WIDTH - 20, floor),
    ]  # fmt: skip
    for value in (low, (low + high) / 2, high):
        shown = _text(number(value, trend.unit))
        parts.append(
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{shown}</text>'
        )
    for i, anchor in ((0, "start"), (n - 1, "end")):
        day = trend.points[i].time.date()
        parts.append(f'<text x="{x(i):.1f}" y="{floor + 18}" text-anchor="{anchor}">{day}</text>')
    for i, p in enumerate(trend.points):
        if p.deviation:
            parts.append(line("bar", x(i), y(p.mean - p.deviation), x(i), y(p.mean + p.deviation)))
        tip = f"{p.commit}: {number(p.mean, trend.unit)}, builds: {len(p.values)}"
        parts.append(
            f'<circle class="dot" cx="{x(i):.1f}" cy="{y(p.mean):.1f}" r="3">'
            f"<title>{_text(tip)}</title></circle>"
        )
    bounds = [0, *(change.at for change in trend.changes), n]
    for begin, end in pairwise(bounds):
        own = [value for p in trend.points[begin:end] for value in p.values]
        mean = y(sum(own) / len(own))
        parts.append(line("mean", x(begin - 0.5), mean, x(end - 0.5), mean))
    for change in trend.changes:
        parts.append(line("change", x(change.at - 0.5), TOP, x(change.at - 0.5), floor))
        commit = _text(trend.points[change.at].commit[:12])
        parts.append(f'<text x="{x(change.at - 0.5) + 4:.1f}" y="{TOP + 10}">{commit}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _text(text: str) -> str:
    return escape("".join(c if c.isprintable() else "?" for c in text))
