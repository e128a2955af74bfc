# SPDX-License-Identifier: Apache-2.0
"""Logs, maps, clock and filters of one command, put together; `account` runs the native part."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from libetrace.xray import account as native_account
from libetrace.xray import grammar
from libetrace.xray.decoder import LogError

from etrace.errors import EtraceError, UsageError
from etrace.xray import clock as clocks
from etrace.xray import log as logs
from etrace.xray.clock import LAST_TSC, Clock
from etrace.xray.names import Names
from etrace.xray.source import Damage, describe, open_log, unpacking_damage

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
        """Return whether any call is left out."""
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


def _named(name: str, read: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a native reader; an error names the file."""
    try:
        return read(*args, **options)
    except LogError as error:
        raise EtraceError(f"{name}: {error}", "is it an XRay log? name the file") from error


def _damage(described: Mapping[str, Any], data: Any) -> Damage:
    problems = [*described["problems"], *unpacking_damage(data)]
    n_more = len(problems) - len(described["problems"])
    return Damage(problems, described["n_problems"] + n_more, described["n_skipped_bytes"])


@dataclass(frozen=True)
class Session:
    """The inputs of a report. Logs of one session have one clock rate."""

    paths: Sequence[str]
    names: Names = field(default_factory=Names)
    selection: Selection = field(default_factory=Selection)
    hz: str | None = None
    #: bytes of each log that has been read; standard input can be read only once
    opened: Sequence[Any] | None = field(default=None, repr=False)
    #: bytes read by the running account, and their total
    position: array[int] = field(default_factory=lambda: array("Q", [0, 0]), repr=False)

    @cached_property
    def data(self) -> Sequence[Any]:
        """Bytes of each log."""
        return self.opened or [open_log(path) for path in self.paths]

    @cached_property
    def logs(self) -> list[logs.Log]:
        """Each log in columns."""
        return [logs.read_bytes(d, p) for d, p in zip(self.data, self.paths, strict=True)]

    @cached_property
    def clock(self) -> Clock:
        """The clock of all logs; EtraceError when their rates differ.

        Logs with equal headers are of one machine; the longest log measures its rate.
        """
        heads = self._heads
        if len({head["frequency_hz"] for head in heads}) == 1:
            longest = max(heads, key=lambda head: clocks.span_ns(head["clocks"]))
            return clocks.choose(longest["frequency_hz"], longest["clocks"], self.hz)
        found = [self._clock_of(i) for i in range(len(self.paths))]
        if any(abs(c.hz - found[0].hz) > clocks.TOLERANCE * c.hz for c in found):
            rates = ", ".join(f"{p}: {c.hz}" for p, c in zip(self.paths, found, strict=True))
            raise EtraceError(
                f"the logs have different clock rates ({rates})",
                "give the rate (--hz N), or look at one log at a time",
            )
        return found[0]

    def _clock_of(self, number: int) -> Clock:
        described = self._heads[number]
        return clocks.choose(described["frequency_hz"], described["clocks"], self.hz)

    @cached_property
    def _heads(self) -> list[dict[str, Any]]:
        """The headers and frames of the logs; reads no records."""
        return [
            _named(path, native_account.describe, data)
            for data, path in zip(self.data, self.paths, strict=True)
        ]

    @cached_property
    def first_tsc(self) -> int:
        """The earliest time of the logs."""
        firsts = [h["first_tsc"] for h in self._heads if h["first_tsc"] is not None]
        if firsts and not any(head["is_basic"] for head in self._heads):
            return int(min(firsts))
        times = [
            log.records["tsc"][thread.first_record]
            for log in self.logs
            for thread in log.threads
            if thread.n_records
        ]
        return min(times, default=0)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Filters in terms of ids and ticks."""
        wants_window = self.selection.from_ns or self.selection.until_ns is not None
        first = self.first_tsc if wants_window else 0
        return self.selection.options(self.names, self.clock, first)

    def account(self, **options: Any) -> Any:
        """Run the native account over all logs with the filters; see libetrace.xray.account."""
        return self.native(**self.options, **options)

    def native(self, **options: Any) -> Any:
        """Run the native account with only these options."""
        return _named(
            ", ".join(self.paths),
            native_account.account,
            self.data,
            position=self.position,
            **options,
        )

    def damages(self, described: Sequence[dict[str, Any]] | None = None) -> list[Damage]:
        """Return the damage of each log; `described` comes from an account."""
        if described is None:
            return [log.damage for log in self.logs]
        return [_damage(one, data) for one, data in zip(described, self.data, strict=True)]

    def warnings(
        self, damages: Sequence[Damage], functions: Collection[int], kinds: Collection[int]
    ) -> Iterator[str]:
        """Yield a line for everything that the user should know."""
        for path, damage in zip(self.paths, damages, strict=True):
            yield from describe(damage, path)
        if text := self.clock.warning():
            yield text
        yield from self.names.misfits(functions, kinds)

    def verify(self) -> None:
        """Enforce the grammar (--strict): EtraceError with the first place that breaks it."""
        for path, data, head in zip(self.paths, self.data, self._heads, strict=True):
            if head["is_basic"]:  # no grammar, but sound records
                damage = logs.read_bytes(data, path).damage
                found = []
            else:
                damage = _damage(head, data)
                found = grammar.verify(data)
            texts = [f"{path}: offset {offset}: {text}" for offset, text in found]
            if texts or damage.is_lossy:
                first = texts[0] if texts else next(describe(damage, path))
                raise EtraceError(
                    f"not a valid log: {first}", "without --strict, what is valid is read"
                )
