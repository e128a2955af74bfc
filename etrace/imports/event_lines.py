# SPDX-License-Identifier: Apache-2.0
"""Events -> event lines, for importers. Tags and arguments come from events.toml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from etrace.errors import EtraceError
from etrace.spec import model

FIRST_LINE = b"INITCWD=%b\n"
NS = 10**9
#: CPU of an event whose log does not have it
NO_CPU = 0
ROOM_BYTES = 1 << 16


class _Form:
    """How the lines of one event are put together."""

    def __init__(self, event: model.Event) -> None:
        self.arguments = [(a.name.encode(), a.size_of) for a in event.args]
        self.strings = [tag.encode() for tag in event.data]
        self.is_bare = event.bare is not None
        self.tag = event.tag.encode()

    def opening(self, numbers: Sequence[int], strings: Sequence[bytes | None]) -> bytes:
        """Return the event's own line, without prefix."""
        if self.is_bare:
            return b"%b|%d" % (self.tag, numbers[0])
        given = iter(numbers)
        shown = []
        for name, size_of in self.arguments:
            if size_of < 0:
                shown.append(b"%b=%d" % (name, next(given)))
            elif (text := strings[size_of]) is not None:
                shown.append(b"%b=%d" % (name, len(text)))
        return self.tag + b"|" + b",".join(shown)


class EventLines:
    """Writes a trace to `stream`. Times are in ns; `counts` has the events by tag.

    The caller writes the events of a upid in order of time. `limit` returns how many bytes the
    trace may have by now.
    """

    def __init__(
        self, stream: BinaryIO, directory: bytes, limit: Callable[[], int] | None = None
    ) -> None:
        spec = model.load()
        self.part_bytes = spec.limit("part_bytes")
        self.pid_bits = spec.limit("upid_pid_bits")
        self.signal_base = spec.limit("signal_status_base")
        self.counts: Counter[str] = Counter()
        self.n_bytes = 0
        self._forms = {event.tag: _Form(event) for event in spec.events}
        self._stream, self._limit = stream, limit
        self._room = [FIRST_LINE % directory.replace(b"\n", b"\\012")]
        self._size = len(self._room[0])

    def put(
        self,
        upid: int,
        time_ns: int,
        tag: str,
        numbers: Sequence[int] = (),
        strings: Sequence[bytes | None] = (),
        items: Iterable[bytes] | None = None,
    ) -> None:
        """Write an event: numbers and strings in the order of the format, None for no string.

        With `items` it is a New_proc, whose arguments they are.
        """
        form = self._forms[tag]
        head = b"%d,%d,%d,%d!" % (upid, NO_CPU, time_ns // NS, time_ns % NS)
        lines = [form.opening(numbers, strings)]
        for name, text in zip(form.strings, strings, strict=True):
            if text is not None:
                lines += self._string(name, text)
        if items is not None:
            for i, item in enumerate(items):
                lines += self._parts(b"A[%d]" % i, item)
            lines.append(b"End_of_args|")
        self.counts[tag] += 1
        self._add(b"".join([b"%b%b\n" % (head, line) for line in lines]))

    def execution(
        self, upid: int, time_ns: int, strings: Sequence[bytes], argv: Sequence[bytes]
    ) -> None:
        """Write a New_proc; `strings` are PI, PP and CW."""
        size = sum(map(len, argv)) + len(argv)
        self.put(upid, time_ns, "New_proc", (size,), strings, argv)

    def variable(self, upids: Iterable[int], time_ns: int, text: bytes) -> None:
        """Write a variable of the environment of all processes that were started with it."""
        for upid in upids:
            self.put(0, time_ns, "UPID", (upid,))
        head = b"0,%d,%d,%d!" % (NO_CPU, time_ns // NS, time_ns % NS)
        pieces = [text[i : i + self.part_bytes] for i in range(0, len(text) or 1, self.part_bytes)]
        for number, piece in enumerate(pieces):
            for line in _text(b"Env[%d]" % number, piece):
                self._add(b"%b%b\n" % (head, line))

    def flush(self) -> None:
        """Write what is still in memory. EtraceError when the trace becomes too large."""
        self._stream.write(b"".join(self._room))
        self.n_bytes += self._size
        if self._limit is not None and self.n_bytes > (limit := self._limit()):
            raise EtraceError(
                f"the trace of this log takes over {limit / 1e6:.0f} MB, too much for its size",
                "if you trust the log, raise the limit: --max-unpacked SIZE, for example 8G",
            )
        self._room, self._size = [], 0

    def _add(self, lines: bytes) -> None:
        self._room.append(lines)
        self._size += len(lines)
        if self._size > ROOM_BYTES:
            self.flush()

    def _string(self, tag: bytes, text: bytes) -> list[bytes]:
        if len(text) < self.part_bytes:
            return _text(tag + b"|", text) if b"\n" in text else [b"%b|%b" % (tag, text)]
        lines: list[bytes] = []
        for number, at in enumerate(range(0, len(text), self.part_bytes)):
            lines += _text(b"%b[%d]" % (tag, number), text[at : at + self.part_bytes])
        if lines[-1] == b"Cont_end|":
            lines[-1] = b"Cont_end"  # as the other backends write it before the end of the string
        return [*lines, tag + b"_end"]

    def _parts(self, opening: bytes, text: bytes) -> list[bytes]:
        if len(text) <= self.part_bytes and b"\n" not in text:
            return [opening + text]
        lines: list[bytes] = []
        for at in range(0, len(text), self.part_bytes):
            lines += _text(opening, text[at : at + self.part_bytes])
        return lines


def _text(opening: bytes, text: bytes) -> list[bytes]:
    """Return the lines of one string or part; a newline in it begins a line of its own."""
    first, *rest = text.split(b"\n")
    if not rest:
        return [opening + first]
    return [opening + first, *(b"Cont|" + line for line in rest), b"Cont_end|"]
