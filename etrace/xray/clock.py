# SPDX-License-Identifier: Apache-2.0
"""Ticks to nanoseconds: chooses the rate, and converts in integer arithmetic.

A header's rate is the processor's highest clock, which is often not that of its counter. Each
buffer of a Flight Data Recorder log begins with the wall clock (in microseconds) and the counter,
so two buffers far enough from each other measure the rate. Where the runtime cannot read the
counter it writes nanoseconds of the real-time clock and a rate of 1e9 (compiler-rt, xray_tsc.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from etrace.errors import EtraceError

NS = 10**9
#: ticks are 64 bits
LAST_TSC = 2**64 - 1
#: tolerated difference between header and measurement
TOLERANCE = 0.01
#: a shorter span measures nothing: between a buffer's two clocks its thread may be interrupted (in
#: spans below 5 ms two of a thousand were wrong by up to 4.6 %, in longer ones by 0.4 % at most)
SHORTEST_NS = 10_000_000
#: 2001-09-09 and 2128: nanoseconds since 1970 that a log can be from
EARLIEST_EPOCH_NS, LATEST_EPOCH_NS = 10**18, 5 * 10**18

Pair = tuple[int, int, int]  # wall seconds, wall microseconds, ticks


class RateSource(Enum):
    """Where the rate comes from."""

    HEADER = "header"
    OPTION = "--hz"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Clock:
    """Ticks a second, and other facts about a log's time."""

    hz: int
    source: RateSource
    measured_hz: int | None = None
    header_hz: int = 0
    is_emulated: bool = False

    def ns(self, ticks: int) -> int:
        """Return whole nanoseconds of a number of ticks, rounded down."""
        return ticks * NS // self.hz

    def seconds(self, ticks: int) -> float:
        """Return seconds; the only division is the last step."""
        return ticks / self.hz

    def ticks(self, ns: int) -> int:
        """Return the ticks of a number of nanoseconds, rounded up."""
        return -(-ns * self.hz // NS)

    def warning(self) -> str | None:
        """Return a warning about the header's rate, or None."""
        measured = self.measured_hz
        if measured is None or self.source is RateSource.OPTION or self.is_emulated:
            return None
        if abs(measured - self.header_hz) <= TOLERANCE * measured:
            return None
        used = "the header's" if self.source is RateSource.HEADER else "the measured one"
        return (
            f"the header says {self.header_hz / 1e6:.3f} MHz, the log's own clocks say "
            f"{measured / 1e6:.3f} MHz: {used} is used; to choose: --hz header, --hz auto or --hz N"
        )


def measure(pairs: Sequence[Pair]) -> int | None:
    """Return ticks a second between the first and the last buffer, None when they are too close.

    A single bad clock must not decide. When the outermost buffers contradict it, the result is the
    median of the rates between buffers that are half the log apart.
    """
    times = sorted((tsc, seconds * NS + us * 1000) for seconds, us, tsc in pairs)
    half = len(times) // 2
    between = sorted(
        rate for pair in zip(times, times[half:], strict=False) if (rate := _rate(*pair))
    )
    if len(times) < 2 or not between:
        return None
    median, whole = between[len(between) // 2], _rate(times[0], times[-1])
    return whole if whole and abs(whole - median) <= TOLERANCE * median else median


def _rate(first: tuple[int, int], last: tuple[int, int]) -> int | None:
    ticks, ns = last[0] - first[0], last[1] - first[1]
    return ticks * NS // ns if ns >= SHORTEST_NS and ticks > 0 else None


def span_ns(pairs: Sequence[Pair]) -> int:
    """Return the duration of a log by the wall clocks of its buffers."""
    times = [seconds * NS + microseconds * 1000 for seconds, microseconds, _ in pairs]
    return max(times, default=0) - min(times, default=0)


def is_emulated(frequency_hz: int, pairs: Sequence[Pair]) -> bool:
    """Return whether ticks are nanoseconds since 1970."""
    return frequency_hz == NS and all(
        EARLIEST_EPOCH_NS <= tsc <= LATEST_EPOCH_NS for _, _, tsc in pairs[:1]
    )


def choose(frequency_hz: int, pairs: Sequence[Pair], option: str | None = None) -> Clock:
    """Choose the rate: `--hz N`, `header`, `auto` (measured if it can be), None (see below).

    Without an option the header's rate is used, unless it is 0 or the measurement contradicts it.
    EtraceError when there is none, or the option is not a number.
    """
    measured, emulated = measure(pairs), is_emulated(frequency_hz, pairs)
    if option not in (None, "auto", "header"):
        return Clock(_number(str(option)), RateSource.OPTION, measured, frequency_hz)
    wrong = measured and abs(measured - frequency_hz) > TOLERANCE * measured and not emulated
    if option != "header" and measured and (option == "auto" or wrong):
        return Clock(measured, RateSource.MEASURED, measured, frequency_hz, emulated)
    if frequency_hz <= 0:
        raise EtraceError(
            "neither the header of the log nor its buffers give a clock rate",
            "give the rate of the counter: --hz N",
        )
    return Clock(frequency_hz, RateSource.HEADER, measured, frequency_hz, emulated)


def _number(text: str) -> int:
    try:
        hz = round(float(text))
    except (ValueError, OverflowError):
        hz = 0
    if hz <= 0:
        raise EtraceError(f"--hz {text}: not a rate", "give ticks a second, auto or header")
    return hz
