# SPDX-License-Identifier: Apache-2.0
"""Builds Flight Data Recorder logs of every version that read like the trace they describe.

LogBuilder(5).thread(7).cpu(0, 1000).enter(1, 10).exit(1, 90).build()
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

NEW_BUFFER, END, NEW_CPU, WRAP, WALL, CUSTOM, ARGUMENT, EXTENTS, TYPED, PID = range(10)
ENTER, EXIT, TAIL_EXIT, ENTER_ARGS = range(4)


def header(
    version: int, *, kind: int = 1, hz: int = 10**9, buffer_bytes: int = 0, big: bool = False
) -> bytes:
    order, bits = (">", 3 << 30) if big else ("<", 3)
    return struct.pack(f"{order}HHIQQQ", version, kind, bits, hz, buffer_bytes, 0)


@dataclass
class LogBuilder:
    """One log of one process. Times of functions are deltas, as in the format."""

    version: int = 5
    hz: int = 10**9
    process: int = 100
    buffer_bytes: int = 4096
    big: bool = False
    _blocks: list[bytearray] = field(default_factory=list)

    @property
    def _order(self) -> str:
        return ">" if self.big else "<"

    def metadata(self, kind: int, layout: str = "", *values: int) -> LogBuilder:
        first = 0x80 | kind if self.big else kind << 1 | 1
        body = struct.pack(self._order + layout, *values)
        self._blocks[-1] += bytes([first]) + body.ljust(15, b"\xa5")  # junk, as writers leave it
        return self

    def raw(self, data: bytes) -> LogBuilder:
        self._blocks[-1] += data
        return self

    def thread(self, number: int, *, wall_us: int = 0) -> LogBuilder:
        """Begin a buffer."""
        self._blocks.append(bytearray())
        self.metadata(NEW_BUFFER, "H" if self.big else "i", number)
        self.metadata(WALL, "qi", wall_us // 10**6, wall_us % 10**6)
        return self.metadata(PID, "i", self.process) if self.version >= 3 else self

    def cpu(self, number: int, tsc: int) -> LogBuilder:
        return self.metadata(NEW_CPU, "HQ", number, tsc)

    def wrap(self, tsc: int) -> LogBuilder:
        return self.metadata(WRAP, "Q", tsc)

    def function(self, action: int, number: int, delta: int) -> LogBuilder:
        word = action << 28 | number if self.big else number << 4 | action << 1
        return self.raw(struct.pack(self._order + "II", word, delta))

    def enter(self, number: int, delta: int) -> LogBuilder:
        return self.function(ENTER, number, delta)

    def exit(self, number: int, delta: int) -> LogBuilder:
        return self.function(EXIT, number, delta)

    def tail_exit(self, number: int, delta: int) -> LogBuilder:
        return self.function(TAIL_EXIT, number, delta)

    def argument(self, value: int) -> LogBuilder:
        return self.metadata(ARGUMENT, "Q", value)

    def custom(self, data: bytes, time: int) -> LogBuilder:
        """`time` is a delta from version 5 on, a time before."""
        if self.version >= 5:
            self.metadata(CUSTOM, "ii", len(data), time)
        elif self.version == 4:
            self.metadata(CUSTOM, "iQH", len(data), time, 0)
        else:
            self.metadata(CUSTOM, "iQ", len(data), time)
        return self.raw(data)

    def typed(self, data: bytes, number: int, time: int) -> LogBuilder:
        layout = "iiH" if self.version >= 5 else "iQH"
        return self.metadata(TYPED, layout, len(data), time, number).raw(data)

    def build(self) -> bytes:
        out = header(self.version, hz=self.hz, buffer_bytes=self.buffer_bytes, big=self.big)
        for block in self._blocks:
            if self.version == 1:
                end = bytes([0x80 | END if self.big else END << 1 | 1]) + bytes(15)
                out += bytes((block + end).ljust(self.buffer_bytes, b"\x5a"))
            else:
                first = 0x80 | EXTENTS if self.big else EXTENTS << 1 | 1
                out += bytes([first]) + struct.pack(self._order + "Q", len(block)).ljust(
                    15, b"\xa5"
                )
                out += bytes(block)
        return out


@dataclass
class BasicBuilder:
    """A log of basic mode."""

    version: int = 3
    _records: bytearray = field(default_factory=bytearray)

    def call(
        self, kind: int, function: int, tsc: int, *, thread: int = 1, process: int = 2, cpu: int = 0
    ) -> BasicBuilder:
        process = process if self.version >= 3 else 0
        self._records += struct.pack("<HBBiQII8x", 0, cpu, kind, function, tsc, thread, process)
        return self

    def argument(
        self, function: int, value: int, *, thread: int = 1, process: int = 2
    ) -> BasicBuilder:
        process = process if self.version >= 3 else 0
        self._records += struct.pack("<HHiIIQ8x", 1, 0, function, thread, process, value)
        return self

    def raw(self, data: bytes) -> BasicBuilder:
        self._records += data
        return self

    def build(self) -> bytes:
        return header(self.version, kind=0) + bytes(self._records)
