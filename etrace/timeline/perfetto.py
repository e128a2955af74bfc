# SPDX-License-Identifier: Apache-2.0
"""Slices and counters as a Perfetto trace, written in pieces. Needs the package perfetto.

Each lane and each counter is a track below the track "build". A slice is a begin and an end; ends
are written when the next slice of the lane shows that they are due. Format:
protos/perfetto/trace/track_event of Perfetto 0.59.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO, Any

from etrace.capture.features import PERFETTO, install_hint
from etrace.errors import EtraceError
from etrace.timeline.counters import Counter
from etrace.timeline.slices import Slice

ALTERNATIVE = "choose --format chrome, which Perfetto reads too, or "
SEQUENCE = 1
ROOT, COUNTERS, LANES = 1, 2, 1000
#: packets that are written at once
PIECE = 1024


def write(stream: IO[bytes], slices: Iterable[Slice], counters: Iterable[Counter]) -> None:
    """Write a trace. EtraceError without the package, OSError."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos  # noqa: PLC0415
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder  # noqa: PLC0415
    except ImportError as error:
        hint = ALTERNATIVE + install_hint(PERFETTO)
        raise EtraceError("a Perfetto trace needs the package perfetto", hint) from error
    writer = _Writer(stream, TraceProtoBuilder, protos.TrackEvent)
    writer.track(ROOT, "build")
    for number, counter in enumerate(counters):
        writer.counter(COUNTERS + number, counter)
    for one in slices:
        writer.slice(one)
    writer.finish()


class _Writer:
    """Open slices of each lane, by their ends; a trace may be written as several, one by one."""

    def __init__(self, stream: IO[bytes], new_builder: Callable[[], Any], event: Any) -> None:
        self.stream, self.new_builder, self.event = stream, new_builder, event
        self.builder, self.n_packets = new_builder(), 0
        self.open: dict[int, list[int]] = {}

    def packet(self) -> Any:
        """Return a new packet; it is written later, with others."""
        if self.n_packets and self.n_packets % PIECE == 0:
            self.flush()
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        if not self.n_packets:
            packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        self.n_packets += 1
        return packet

    def flush(self) -> None:
        self.stream.write(self.builder.serialize())
        self.builder = self.new_builder()

    def track(self, uuid: int, name: str, unit: str | None = None) -> None:
        """Declare a track; with a unit, which may be empty, that of a counter."""
        packet = self.packet()
        track = packet.track_descriptor
        track.uuid, track.name = uuid, name
        if uuid != ROOT:
            track.parent_uuid = ROOT
        if unit is not None:
            track.counter.unit_name = unit

    def counter(self, uuid: int, counter: Counter) -> None:
        self.track(uuid, counter.name, counter.unit)
        for time_ns, value in counter.points:
            packet = self.packet()
            packet.timestamp = time_ns
            event = packet.track_event
            event.type, event.track_uuid = self.event.TYPE_COUNTER, uuid
            event.double_counter_value = value

    def slice(self, one: Slice) -> None:
        """Begin a slice, after the ends that come before it."""
        if one.lane not in self.open:
            self.open[one.lane] = []
            self.track(LANES + one.lane, f"lane {one.lane + 1}")
        ends = self.open[one.lane]
        while ends and (ends[-1] <= one.start_ns or ends[-1] < one.end_ns):
            self.end(one.lane, ends.pop())
        packet = self.packet()
        packet.timestamp = one.start_ns
        event = packet.track_event
        event.type, event.track_uuid = self.event.TYPE_SLICE_BEGIN, LANES + one.lane
        event.name = _text(one.name)
        event.categories.append(one.category)
        for name, value in one.details:
            note = event.debug_annotations.add()
            note.name = name
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = _text(value)
        ends.append(one.end_ns)

    def end(self, lane: int, time_ns: int) -> None:
        packet = self.packet()
        packet.timestamp = time_ns
        event = packet.track_event
        event.type, event.track_uuid = self.event.TYPE_SLICE_END, LANES + lane

    def finish(self) -> None:
        """End what is open."""
        for lane, ends in self.open.items():
            while ends:
                self.end(lane, ends.pop())
        self.flush()


def _text(text: str) -> str:
    r"""Return text in UTF-8: protobuf takes no other; bytes that are not become \udcXX."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
