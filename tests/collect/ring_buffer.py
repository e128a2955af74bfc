# SPDX-License-Identifier: Apache-2.0
"""An ftrace instance in files: pages of the kernel's ring buffer with records of the module.

Written from Linux's kernel/trace/ring_buffer.c and native/format/etrace_record.h, to test
etrace_cat without a kernel. `Instance(DIR)` lays out what `--tracefs` and `--raw` read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import event_lines as oracle

from etrace.spec import model

SPEC = model.load()
EVENTS = [event.tag for event in SPEC.events]
STRINGS = [data.tag for data in SPEC.data]

TYPE_ID = 1729
PAGE_BYTES = 4096
HEADER_BYTES = 16
DATA_BYTES = PAGE_BYTES - HEADER_BYTES
COMMON_BYTES = 8
RECORD = struct.Struct("<HBBiqQHHI")  # common fields, then struct etrace_record
PIECE = struct.Struct("<BBBBIII")
ABSENT = 0xFFFFFFFF
MORE, CONTINUES, NUMBER_SHIFT, NUMBER_MASK = 1, 2, 2, 0x3FFF
EVENT, TEXT, END_OF_ARGS = 1, 2, 3
LINE_ONLY = 1
NUMBERED, IN_CONT, OPEN, END = 1, 2, 4, 8
SMALL_DATA_MAX = 28 * 4
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MISSED_EVENTS, MISSED_STORED = 1 << 31, 1 << 30

HEADER_EVENT = """# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
FORMAT = f"""name: etrace_record
ID: {TYPE_ID}
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:s64 upid;\toffset:8;\tsize:8;\tsigned:1;
\tfield:u64 time_ns;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u16 cpu;\toffset:24;\tsize:2;\tsigned:0;
\tfield:u16 flags;\toffset:26;\tsize:2;\tsigned:0;
\tfield:__data_loc u8[] payload;\toffset:28;\tsize:4;\tsigned:0;

print fmt: "upid=%lld", REC->upid
"""


def header_page(page_bytes: int = PAGE_BYTES) -> str:
    """Return `events/header_page`."""
    data = page_bytes - HEADER_BYTES
    return (
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
        "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
        f"\tfield: char data;\toffset:{HEADER_BYTES};\tsize:{data};\tsigned:1;\n"
    )


def _padded(data: bytes, to: int = 8) -> bytes:
    return data + bytes(-len(data) % to)


def event_piece(tag: str, values: Mapping[str, oracle.Value], *, line_only: bool = False) -> bytes:
    """Return an event as one piece; `values` as for event_lines.event_lines()."""
    spec = SPEC.event(tag)
    numbers = [values[arg.name] for arg in spec.args if arg.size_of < 0]
    texts = [values.get(name) for name in spec.data]
    body = b"".join(struct.pack("<Q", int(n or 0) & (1 << 64) - 1) for n in numbers)
    strings = [text for text in texts if isinstance(text, bytes)]
    lengths = [len(text) if isinstance(text, bytes) else ABSENT for text in texts]
    body += _padded(struct.pack(f"<{len(lengths)}I", *lengths))
    if not line_only:
        body += b"".join(strings)
    n_bytes = sum(len(text) for text in strings)
    size = PIECE.size + len(_padded(body))
    head = PIECE.pack(
        EVENT, EVENTS.index(tag), LINE_ONLY * line_only, len(numbers), n_bytes, 0, size
    )
    return head + _padded(body)


def text_piece(tag: str, text: bytes, *, flags: int = 0, index: int = 0) -> bytes:
    """Return a piece of one string."""
    size = PIECE.size + len(_padded(text))
    head = PIECE.pack(TEXT, STRINGS.index(tag), flags, 0, len(text), index, size)
    return head + _padded(text)


def end_of_args() -> bytes:
    """Return the piece that ends an argument list."""
    return PIECE.pack(END_OF_ARGS, 0, 0, 0, 0, 0, PIECE.size)


def record(
    upid: int, time_ns: int, cpu: int, pieces: bytes, *, flags: int = 0, type_id: int = TYPE_ID
) -> bytes:
    """Return an entry's data: common fields, struct etrace_record, payload."""
    location = RECORD.size | len(pieces) << 16
    return RECORD.pack(type_id, 0, 0, 1, upid, time_ns, cpu, flags, location) + pieces


def record_flags(number: int, n_records: int) -> int:
    """Return the flags of record `number` of `n_records`."""
    more = MORE if number < n_records - 1 else 0
    return more | (CONTINUES if number else 0) | (number & NUMBER_MASK) << NUMBER_SHIFT


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its records' pieces, and the lines that must come out."""

    upid: int
    time_ns: int
    cpu: int
    payloads: tuple[bytes, ...]
    lines: bytes

    def records(self) -> list[bytes]:
        """Return the entries' data in their order."""
        n = len(self.payloads)
        return [
            record(self.upid, self.time_ns, self.cpu, pieces, flags=record_flags(i, n))
            for i, pieces in enumerate(self.payloads)
        ]


def plain_event(
    upid: int, time_ns: int, cpu: int, tag: str, values: Mapping[str, oracle.Value]
) -> Event:
    """Return an event of one record."""
    head = oracle.prefix(upid, cpu, time_ns)
    return Event(
        upid, time_ns, cpu, (event_piece(tag, values),), oracle.event_lines(head, tag, values)
    )


def exec_event(upid: int, time_ns: int, cpu: int, argv: Sequence[bytes], per_record: int) -> Event:
    """Return an execution whose arguments are in records of `per_record` each."""
    values: dict[str, oracle.Value] = {
        "argsize": sum(len(arg) + 1 for arg in argv), "PI": b"/bin/a", "PP": b"/bin/a", "CW": b"/"
    }  # fmt: skip
    items = [
        b"".join(
            text_piece("A", part, flags=NUMBERED, index=number) for part in oracle.parts(argument)
        )
        for number, argument in enumerate(argv)
    ]
    payloads = [event_piece("New_proc", values)]
    payloads += [b"".join(items[at : at + per_record]) for at in range(0, len(items), per_record)]
    payloads[-1] += end_of_args()
    head = oracle.prefix(upid, cpu, time_ns)
    lines = oracle.exec_lines(head, values, list(argv))
    return Event(upid, time_ns, cpu, tuple(payloads), lines)


def entry(data: bytes, *, delta: int = 1) -> bytes:
    """Return a ring buffer entry that holds `data`."""
    length = len(data) + -len(data) % 4
    if length > SMALL_DATA_MAX or not length:
        return struct.pack("<II", delta << 5, length + 4) + _padded(data, 4)
    return struct.pack("<I", delta << 5 | length // 4) + _padded(data, 4)


def time_extend(kind: int = TIME_EXTEND) -> bytes:
    """Return a time extend or an absolute time stamp."""
    return struct.pack("<II", 5 << 5 | kind, 77)


def discarded(data: bytes) -> bytes:
    """Return an entry that its writer took back: padding with a length."""
    length = len(data) + -len(data) % 4
    return struct.pack("<II", 1 << 5 | PADDING, length + 4) + _padded(data, 4)


def page(
    entries: bytes,
    *,
    page_bytes: int = PAGE_BYTES,
    missed: int | None = None,
    stored: bool = True,
    commit: int | None = None,
) -> bytes:
    """Return one page; `missed` marks that records before it were overwritten."""
    flags = 0 if missed is None else MISSED_EVENTS | (MISSED_STORED if stored else 0)
    length = len(entries) if commit is None else commit
    out = struct.pack("<QQ", 12345, length | flags) + entries
    if missed is not None and stored:
        out += struct.pack("<Q", missed)
    assert len(out) <= page_bytes
    return out + bytes(page_bytes - len(out))


def pages(entries: Iterable[bytes], *, page_bytes: int = PAGE_BYTES) -> bytes:
    """Return entries in as few pages as they need; the rest of a page is padding or nothing."""
    out, held = [], b""
    for item in entries:
        if len(held) + len(item) > page_bytes - HEADER_BYTES:
            out.append(page(_with_padding(held, page_bytes), page_bytes=page_bytes))
            held = b""
        held += item
    if held:
        out.append(page(held, page_bytes=page_bytes))
    return b"".join(out)


def _with_padding(held: bytes, page_bytes: int) -> bytes:
    room = page_bytes - HEADER_BYTES - len(held)
    return held + struct.pack("<I", PADDING).ljust(room, b"\xff") if room >= 4 else held


@dataclass
class Instance:
    """The directory of an instance under construction."""

    path: Path
    page_bytes: int = PAGE_BYTES
    buffers: dict[int, list[bytes]] = field(default_factory=dict)

    def add(self, cpu: int, *data: bytes) -> None:
        """Put records into a CPU's buffer."""
        self.buffers.setdefault(cpu, []).extend(entry(item) for item in data)

    def add_events(self, cpu: int, events: Iterable[Event]) -> None:
        """Put events into a CPU's buffer."""
        for event in events:
            self.add(cpu, *event.records())

    def write_description(self) -> None:
        """Write `events/`."""
        event = self.path / "events/etrace/etrace_record"
        event.mkdir(parents=True, exist_ok=True)
        (event / "format").write_text(FORMAT)
        (event / "id").write_text(f"{TYPE_ID}\n")
        (self.path / "events/header_page").write_text(header_page(self.page_bytes))
        (self.path / "events/header_event").write_text(HEADER_EVENT)

    def cpu(self, number: int) -> Path:
        """Return the directory of a CPU."""
        path = self.path / f"per_cpu/cpu{number}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self) -> Path:
        """Write everything; return the instance's path."""
        self.write_description()
        for number, entries in self.buffers.items():
            raw = pages(entries, page_bytes=self.page_bytes)
            (self.cpu(number) / "trace_pipe_raw").write_bytes(raw)
        return self.path
