# SPDX-License-Identifier: Apache-2.0
"""`wall>+10%`: a limit on a figure of a comparison, and whether it is exceeded.

LIMIT   figure ('>' | '>=' | '<' | '<=') [sign] number [unit]
figure  wall, cpu, critical-path, commands, failed, size, dependencies
sign    '+' or '-': the change from the first to the second build; without it, the second build
unit    % of a change; else ns, us, ms, s of times, B, kB, MB, GB of sizes, none of numbers
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from etrace.errors import EtraceError, UsageError
from etrace.query.rows.usage import UNITS
from etrace.report.comparison.build import BYTES, NS, NUMBER
from etrace.report.comparison.compare import Comparison, Figure

FIGURES = {
    "wall": NS, "cpu": NS, "critical-path": NS, "commands": NUMBER, "failed": NUMBER,
    "size": BYTES, "dependencies": NUMBER,
}  # fmt: skip
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
PERCENT = "%"
EXAMPLE = "for example 'wall>+10%', 'size>+20kB', 'failed>0'"
_LIMIT = re.compile(r"([\w-]+)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*(\S*)")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as it was written, and what it compares."""

    text: str
    figure: str
    operator: str
    is_change: bool
    bound: float  #: in the figure's unit; a part of what was before if `is_part`
    is_part: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a limit is exceeded; a change that may be noise does not count."""

    limit: Limit
    figure: Figure
    is_exceeded: bool
    is_noise: bool  #: it would be exceeded, but builds without a change differ as much


def read_limit(text: str) -> Limit:
    """Read a limit; UsageError."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--fail-if {text!r} is not FIGURE>NUMBER", EXAMPLE)
    name, compare, sign, digits, unit = found.groups()
    if name not in FIGURES:
        raise UsageError(
            f"--fail-if {text!r}: no figure {name!r}", f"there are: {', '.join(FIGURES)}"
        )
    if unit == PERCENT and not sign:
        raise UsageError(
            f"--fail-if {text!r}: a percentage is of a change", f"write {compare}+{digits}%"
        )
    factor = 0.01 if unit == PERCENT else _factor(text, name, unit)
    bound = float(digits) * factor * (-1 if sign == "-" else 1)
    return Limit(text.strip(), name, compare, bool(sign), bound, unit == PERCENT)


def _factor(text: str, name: str, unit: str) -> int:
    units = UNITS.get(FIGURES[name], {"": 1})
    if unit in units:
        return units[unit]
    names = ", ".join(filter(None, units))
    if not names:
        raise UsageError(f"--fail-if {text!r}: {name} is a number without a unit", EXAMPLE)
    raise UsageError(
        f"--fail-if {text!r}: {name} needs a unit", f"units: {names}, or % of a change"
    )


def judge(comparison: Comparison, limit: Limit) -> Verdict:
    """Compare a figure with its limit; EtraceError when the figure is not known."""
    figure = comparison.figures[limit.figure]
    found = figure.after
    if limit.is_change:
        found = figure.ratio if limit.is_part else figure.change
    if found is None:
        raise EtraceError(
            f"--fail-if {limit.text!r}: {limit.figure} is not known of both builds",
            "CPU time needs a trace with usage, size and dependencies need cas pp",
        )
    is_beyond = OPERATORS[limit.operator](found, limit.bound)
    is_noise = is_beyond and limit.is_change and figure.is_noise
    return Verdict(limit, figure, is_beyond and not is_noise, is_noise)
