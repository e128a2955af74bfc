# SPDX-License-Identifier: Apache-2.0
"""The result of a session: the counts of the collector and the kernel, and the losses.

A record is lost where it could not be written (the module counts it), where the ring buffer threw
it away (its own counts), or between the buffer and the file (written by the module, not read by
the collector).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etrace.capture.kmod.loading import probes
from etrace.capture.kmod.system.control import Counter, Phase, Status
from etrace.capture.kmod.system.tracefs import BufferCounts
from etrace.figures import agree

BACKEND = "kmod"
SCHEMA = 1
STOPPED = "stopped"
LARGER = 4
#: a module without a session so far
NOTHING = Status(Phase.IDLE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All counts at the end of a session. `status` is None when the module gave none.

    `collected` is what the collector wrote last; `whole` says that it ended by itself. It counts
    the processes that others made; `n_roots` were there before.
    """

    status: Status | None
    buffers: BufferCounts
    changed_options: tuple[str, ...]
    collected: dict[str, Any]
    whole: bool
    buffer_kib: int
    remarks: tuple[str, ...] = ()
    n_roots: int = 0

    def count(self, counter: Counter) -> int:
        """Return a counter of the module, 0 when it is unknown."""
        return 0 if self.status is None else self.status.count(counter)

    @property
    def missing_probes(self) -> tuple[str, ...]:
        """Functions that could not be probed, or not until the end."""
        return () if self.status is None else self.status.missing_probes


@dataclass(frozen=True, slots=True)
class Loss:
    """A number of events (or of records, if events are unknown), and why they are missing."""

    n: int
    reason: str
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended. `trace` is where the finished trace is."""

    trace: Path
    aside: bool
    stats: dict[str, Any]
    losses: tuple[Loss, ...]
    warnings: tuple[str, ...]
    hint: str = ""
    published: bool = True  #: whether there was anything to write; else an older trace is unchanged

    @property
    def lost(self) -> int:
        """Events lost in all."""
        return sum(loss.n for loss in self.losses)


def losses(evidence: Evidence) -> tuple[Loss, ...]:
    """Return the losses with their reasons."""
    collected, overrun = evidence.collected, evidence.buffers.overrun
    unread = max(evidence.count(Counter.RECORDS) - int(collected.get("records", 0)), 0)
    found = [
        Loss(
            max(evidence.count(Counter.LOST_EVENTS), _dropped_unseen(evidence)),
            f"the buffers were full ({evidence.buffer_kib} KiB a CPU)",
        ),
        Loss(overrun, "another tool made the buffers overwrite unread records"),
        Loss(max(unread, int(collected.get("lost", 0))) - overrun, _collector_reason(evidence)),
        Loss(evidence.count(Counter.UNTRACKED), "the kernel had no memory to trace a process"),
        Loss(evidence.count(Counter.NO_MEMORY), "the kernel had no memory for an event"),
    ]
    figures = tuple(loss for loss in found if loss.n > 0) or _without_figures(evidence)
    return (*figures, *_without_probes(evidence))


def _without_figures(evidence: Evidence) -> tuple[Loss, ...]:
    """Return a certain or possible loss without a count."""
    if not evidence.whole:
        return (Loss(1, "nothing was recorded after the collector died", at_least=True),)
    if evidence.status is None:
        return (Loss(1, "without the kernel's counts the trace may be incomplete", at_least=True),)
    return ()


def _without_probes(evidence: Evidence) -> tuple[Loss, ...]:
    """Return the loss of a session whose kprobes were switched off before or during it."""
    if not probes.are_off(evidence.missing_probes):
        return ()
    return (Loss(1, probes.told(evidence.missing_probes), at_least=True),)


def _dropped_unseen(evidence: Evidence) -> int:
    """Return how many records the ring buffer refused without the module knowing."""
    return evidence.buffers.dropped - evidence.count(Counter.LOST_RECORDS)


def _collector_reason(evidence: Evidence) -> str:
    if error := evidence.collected.get("error"):
        return f"the trace could not be written: {error}"
    if not evidence.whole:
        return "the collector died or was killed: the trace ends there"
    if evidence.collected.get("collectors", 1) > 1:
        return "a collector that was killed had read them and not written them"
    return "they were not read from the buffers"


WARNINGS = {
    Counter.UNREAD_STRINGS: "string{s} of traced programs could not be read",
    Counter.UNRESOLVED_PATHS: "path{s} could not be resolved: too long, or removed meanwhile",
    Counter.RACES: "descriptor{s} {was|were} reused by another thread before being read",
    Counter.IO_URING: "use{s} of io_uring: files opened through it are not in the trace",
    Counter.PASSED_FDS: "call{s} may have received descriptors, which have no event",
    Counter.MISSED_PROBES: "call{s} of rename, link or mount came during another one",
    Counter.PRIVILEGED: "program{s} that you may not watch (set-uid, set-gid, with capabilities) "
    "{was|were} left out, with all that {it|they} started",
    Counter.NEW_MOUNT_API: "use{s} of the newer mount calls (fsopen, move_mount): no Mount",
}


def warnings(evidence: Evidence) -> tuple[str, ...]:
    """Return messages about missing data other than losses."""
    found = [agree(n, text) for c, text in WARNINGS.items() if (n := evidence.count(c))]
    missing = evidence.missing_probes
    if missing and not probes.are_off(missing):
        found.append(probes.told(missing))
    if evidence.changed_options:
        changed = ", ".join(evidence.changed_options)
        found.append(f"another tool set {changed} while the session ran")
    return (*evidence.remarks, *found)


def hint(evidence: Evidence) -> str:
    """Return how to avoid the loss."""
    if evidence.count(Counter.LOST_EVENTS):
        return f"give larger buffers: etrace start --buffer-size {evidence.buffer_kib * LARGER}"
    if probes.are_off(evidence.missing_probes):
        return probes.OFF_HINT
    return "trace the build again" if losses(evidence) else ""


def _ended(evidence: Evidence, by: str) -> str:
    if not evidence.whole:
        return "collector-died"
    ended = str(evidence.collected.get("ended", STOPPED))
    return by if ended == STOPPED else ended


def stats(evidence: Evidence, more: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `.nfsdb.stats`: the collector's counts, then the totals."""
    found = losses(evidence)
    return {
        "schema": SCHEMA,
        "backend": BACKEND,
        **evidence.collected,
        "processes": int(evidence.collected.get("processes", 0)) + evidence.n_roots,
        "lost": sum(loss.n for loss in found),
        "losses": [dataclasses.asdict(loss) for loss in found],
        "kernel": evidence.status and evidence.status.named_counters(),
        "missing_probes": list(evidence.missing_probes),
        "buffer_kib": evidence.buffer_kib,
        "buffer_overrun": evidence.buffers.overrun,
        "buffer_dropped": evidence.buffers.dropped,
        "warnings": list(warnings(evidence)),
        **more,
        "ended": _ended(evidence, more.get("ended", STOPPED)),
    }


def mark(lost: int) -> bytes:
    """Return the line that says in a trace that events are lost; the kernel's own, of CPU 0."""
    return f"CPU:0 [LOST {lost} EVENTS]\n".encode()


def zstd_frame(content: bytes) -> bytes:
    """Return a frame of one raw block (RFC 8878, 3.1.1); content of at most 255 bytes."""
    single_segment, raw_and_last = 0x20, 1
    header = b"\x28\xb5\x2f\xfd" + bytes([single_segment, len(content)])
    return header + (len(content) << 3 | raw_and_last).to_bytes(3, "little") + content
