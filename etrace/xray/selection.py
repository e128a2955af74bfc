# SPDX-License-Identifier: Apache-2.0
"""The calls of a log that a report selects: the filters of every command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etrace.errors import UsageError
from etrace.xray.clock import LAST_TSC, Clock
from etrace.xray.names import Names

UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
TIME = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(ns|us|µs|ms|s)?")
LAST_TID = 2**31 - 1


def parse_time(text: str) -> int:
    """Read `1.5ms` as nanoseconds; without a unit they are seconds."""
    match = TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a time", "write a number and ns, us, ms or s: 1.5ms")
    whole, _, fraction = match[1].partition(".")
    unit: int = UNITS_NS[match[2] or "s"]
    part: int = int(fraction or 0) * unit // 10 ** len(fraction)
    return int(whole) * unit + part


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected calls. Times are nanoseconds, `from_ns` and `until_ns` since the log began."""

    functions: Sequence[str] = ()
    threads: Sequence[int] = ()
    from_ns: int = 0
    until_ns: int | None = None
    shortest_ns: int = 0

    @property
    def is_narrow(self) -> bool:
        """Tell whether any call is left out."""
        times = self.from_ns or self.shortest_ns or self.until_ns is not None
        return bool(times or self.functions or self.threads)

    def options(self, names: Names, clock: Clock, first_tsc: int) -> dict[str, Any]:
        """Return the same selection as options of libetrace.xray.account.account."""
        return {
            "functions": names.matching(self.functions) if self.functions else None,
            "threads": [t for t in self.threads if abs(t) <= LAST_TID] if self.threads else None,
            "shortest": min(clock.ticks(self.shortest_ns), LAST_TSC),
            "from_tsc": _bounded(first_tsc, clock, self.from_ns) if self.from_ns else 0,
            "until_tsc": _bounded(first_tsc, clock, self.until_ns),
        }


def _bounded(first_tsc: int, clock: Clock, ns: int | None) -> int:
    return LAST_TSC if ns is None else min(first_tsc + clock.ticks(ns), LAST_TSC)
