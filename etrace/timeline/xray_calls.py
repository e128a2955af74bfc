# SPDX-License-Identifier: Apache-2.0
"""XRay logs -> the calls of each thread, as slices inside the execution that wrote the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from libetrace.image.file import Image

from etrace.timeline.slices import Slice
from etrace.xray.join import PID_MASK, join, offset_ns
from etrace.xray.log import Log
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Session


class XRayCalls:
    """Calls by row of `executions`; `left_out` says which logs and threads have none, and why."""

    def __init__(self, image: Image, logs: Sequence[str], maps: Sequence[str]) -> None:
        self._image = image
        self._threads: dict[int, list[tuple[Session, int, int]]] = {}
        self.left_out: list[str] = []
        names = Names(read_maps(maps)) if logs else Names()
        for path in logs:
            self._add(Session([path], names))

    def _add(self, session: Session) -> None:
        (log,) = session.logs
        found, offset = join(self._image, log), offset_ns(self._image, log)
        if found.execution is None or offset is None:
            reason = found.reason or "the log does not say when it began"
            self.left_out.append(f"{log.name} is left out: {reason}")
            return
        for number, thread in enumerate(log.threads):
            row = self._row_of_thread(found.execution.row, thread.thread)
            if row is None:
                self.left_out.append(f"{log.name}: thread {thread.thread} is not in the database")
            else:
                self._threads.setdefault(row, []).append((session, number, offset))

    def _row_of_thread(self, row: int, thread: int) -> int | None:
        """Return the execution of a thread: the process's own, or that of a thread below it."""
        executions = self._image["executions"]
        upid, children = executions["upid"], self._image["children"]
        if upid[row] & PID_MASK == thread:
            return row
        waiting, seen = [row], {row}
        while waiting:
            for at in executions.span("children.start", waiting.pop()):
                child: int = children["execution"][at]
                if children["upid"][at] & PID_MASK == thread and child >= 0:
                    return child
                if child >= 0 and child not in seen:
                    seen.add(child)
                    waiting.append(child)
        return None

    def __call__(self, row: int) -> Iterator[Slice]:
        """Yield the calls in an execution, by start, an outer one first."""
        for session, number, offset in self._threads.get(row, ()):
            yield from _calls(session, session.logs[0], number, offset)


def _calls(session: Session, log: Log, number: int, offset: int) -> Iterator[Slice]:
    calls, clock, first = log.calls(**session.options), session.clock, session.first_tsc
    columns = (calls[name] for name in ("start", "ticks", "function", "thread"))
    own = [row[:3] for row in zip(*columns, strict=True) if row[3] == number]
    own.sort(key=lambda call: (call[0], -call[1]))
    for start, ticks, function in own:
        begin = offset + round(clock.ns(start - first))
        end = offset + round(clock.ns(start + ticks - first))
        yield Slice(0, begin, end, session.names.name(function), "xray")
