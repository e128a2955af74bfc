# SPDX-License-Identifier: Apache-2.0
"""The times of one log in their order -> ns, never decreasing for a process.

A log may have wall-clock times (-ttt), times of the day (-t, -tt), times since the line before (-r)
or none. Then only their order and distance mean something.
"""

from __future__ import annotations

from etrace.imports.strace.lines import DAY_NS, Line

#: where times begin that have no date; a line without time comes so much later than the one before
BEGIN_NS = 10**9
STEP_NS = 1000
#: stamps have 63 bits; nothing beyond is a time
LAST_NS = (1 << 62) - 1

NO_TIMES = "times: the order of the lines is kept, one microsecond apart; record with -ttt"
NO_DATE = "the date: times begin at the first line's time of day; record with -ttt"
NO_BEGIN = "when the build began: times count from the first line; record with -ttt"
SECONDS = "fractions of seconds; record with -ttt"


class Clock:
    """The times of one file. `lacks` gets what they do not tell."""

    def __init__(self, offset_ns: int, lacks: set[str]) -> None:
        self._offset_ns = offset_ns
        self._lacks = lacks
        self._last_ns = BEGIN_NS
        self._days_ns = 0
        self._of_day: int | None = None

    def stamp(self, line: Line) -> int:
        """Return the time of a line."""
        if line.time is None:
            self._lacks.add(NO_TIMES)
            self._last_ns += STEP_NS
        elif line.is_relative:
            self._lacks.add(NO_BEGIN)
            self._last_ns += line.time
        elif line.is_of_day:
            self._lacks.add(NO_DATE)
            self._last_ns = BEGIN_NS + self._day(line.time)
        else:
            self._last_ns = max(line.time - self._offset_ns, 0)
        self._last_ns = min(self._last_ns, LAST_NS)
        return self._last_ns

    def _day(self, time: int) -> int:
        if self._of_day is not None and time < self._of_day - DAY_NS // 2:
            self._days_ns += DAY_NS
        self._of_day = time
        return self._days_ns + time
