# SPDX-License-Identifier: Apache-2.0
"""Python's view of a log: columns of records and of calls, without a copy.

Every column is a memoryview, which NumPy (`numpy.asarray(column)`), Arrow and pandas accept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from libetrace.xray import account as native_account
from libetrace.xray import log as native_log
from libetrace.xray.decoder import LogError

from etrace.errors import EtraceError
from etrace.xray import clock as clocks
from etrace.xray.clock import LAST_TSC, Clock
from etrace.xray.source import Damage, open_log, unpacking_damage

#: values of the column `kind`
KINDS = ("enter", "exit", "tail-exit", "enter-arg", "custom-event", "typed-event")
#: values of the column `ending` of calls
ENDINGS = native_account.ENDINGS


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread; its records are [first_record, first_record + n_records)."""

    process: int
    thread: int
    first_record: int
    n_records: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the program logged itself; `type` is 0 for a custom event."""

    record: int
    type: int
    data: bytes


class Columns(Mapping[str, "memoryview[int]"]):
    """Columns of one length by name. `numpy()` and `arrow()` wrap them without a copy."""

    def __init__(self, columns: Mapping[str, memoryview[int]]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> memoryview[int]:
        return self._columns[name]

    def __iter__(self) -> Any:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def numpy(self) -> dict[str, Any]:
        """Return NumPy arrays over the same memory; ImportError without NumPy."""
        import numpy as np

        return {name: np.asarray(column) for name, column in self._columns.items()}

    def arrow(self) -> Any:
        """Return a pyarrow Table over the same memory; ImportError without pyarrow."""
        import pyarrow as pa

        types = {"Q": pa.uint64(), "q": pa.int64(), "I": pa.uint32(), "B": pa.uint8()}
        arrays = {
            name: pa.Array.from_buffers(
                types[column.format], len(column), [None, pa.py_buffer(column)]
            )
            for name, column in self._columns.items()
        }
        return pa.table(arrays)


class Calls(Columns):
    """Calls of a log, by thread and then by when they began; one element each, times in ticks.

    `start` (u64), `ticks` and `self_ticks` (u64: with and without the calls it made), `parent`
    (i64: row of the caller, -1 at a root), `function` (u32: id), `depth` (u32), `thread` (u32:
    index into `Log.threads`), `ending` (u8: index into ENDINGS).
    """


@dataclass(frozen=True)
class Log:
    """One log. `records` has the columns `tsc` (u64, ticks), `function` (u32: id), `kind` (u8:
    index into KINDS), ordered by thread and then by time as written.
    """  # noqa: D205

    name: str
    data: Any
    raw: Any

    @property
    def version(self) -> int:
        """Version of the format: 1 to 5, of basic logs 1 to 3."""
        return int(self.raw.version)

    @property
    def is_basic(self) -> bool:
        """Whether the log is of basic mode, not of the Flight Data Recorder."""
        return bool(self.raw.is_basic)

    @property
    def n_records(self) -> int:
        """Number of function records and events."""
        return int(self.raw.n_records)

    @property
    def damage(self) -> Damage:
        """The damage of the file."""
        unpacking = unpacking_damage(self.data)
        problems, n_problems = (
            [*self.raw.problems, *unpacking],
            self.raw.n_problems + len(unpacking),
        )
        return Damage(problems, n_problems, self.raw.n_skipped_bytes)

    @cached_property
    def records(self) -> Columns:
        """Columns of the records."""
        raw = self.raw
        return Columns({"tsc": raw.tsc, "function": raw.function, "kind": raw.kind})

    @cached_property
    def threads(self) -> tuple[Thread, ...]:
        """Threads in the order of their records."""
        return tuple(Thread(*row) for row in self.raw.threads)

    @cached_property
    def arguments(self) -> Sequence[tuple[int, int]]:
        """Logged arguments as (record, value), by record."""
        return sorted(self.raw.arguments, key=lambda row: row[0])

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Custom and typed events, by record."""
        view = memoryview(self.data)
        return tuple(
            Event(record, number, bytes(view[offset : offset + n_bytes]))
            for record, offset, n_bytes, number in self.raw.events
        )

    @cached_property
    def cpus(self) -> Sequence[tuple[int, int]]:
        """CPUs as (first record, cpu): each up to the next one."""
        return list(self.raw.cpus)

    @property
    def clock_pairs(self) -> Sequence[clocks.Pair]:
        """Wall seconds, microseconds and ticks of each buffer that has them."""
        clocks_ = (block[4:7] for block in self.raw.blocks)
        return [(wall, us, tsc) for wall, us, tsc in clocks_ if None not in (wall, tsc)]

    def clock(self, hz: str | None = None) -> Clock:
        """Return the clock that converts ticks to nanoseconds; see etrace.xray.clock.choose."""
        return clocks.choose(self.raw.frequency_hz, self.clock_pairs, hz)

    def calls(
        self,
        *,
        functions: Iterable[int] | None = None,
        threads: Iterable[int] | None = None,
        shortest: int = 0,
        from_tsc: int = 0,
        until_tsc: int = LAST_TSC,
    ) -> Calls:
        """Match enters and exits. All times are ticks, as in `records["tsc"]`.

        `functions`: ids of those to look at (None: all); the time of others is their callers' own.
        `threads`: numbers of threads (`Thread.thread`, None: all). Calls of less than `shortest`
        ticks, and those that begin before `from_tsc`, or at `until_tsc` or later, are left out;
        their time is their callers' own. Calls that lost their exit end with their caller, as
        `ending` says; one whose time went back has 0 ticks. OverflowError when a number of ticks
        is negative or above 2**64 - 1.
        """
        done = native_account.account(
            self.data,
            functions=functions,
            threads=threads,
            shortest=shortest,
            from_tsc=from_tsc,
            until_tsc=until_tsc,
            calls=True,
            percentiles=False,
        )
        return Calls({name: _cast(data, code) for name, code, data in done.columns()})


def _cast(data: bytearray, code: Any) -> memoryview[int]:
    view: memoryview[int] = memoryview(data).cast(code)
    return view


def read_bytes(data: Any, name: str = "log") -> Log:
    """Decode the bytes of a log. EtraceError when they are not a log."""
    try:
        return Log(name, data, native_log.read(data))
    except LogError as error:
        raise EtraceError(f"{name}: {error}", "is it an XRay log? name the file") from error


def read(path: str | os.PathLike[str]) -> Log:
    """Read a log: FDR of version 1 to 5 or basic, plain, gzip or zstd; `-` is standard input.

    Damaged parts are skipped and reported in `Log.damage`. EtraceError when the file is not a log
    or cannot be read.
    """
    return read_bytes(open_log(path), os.fspath(path))
