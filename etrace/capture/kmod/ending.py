# SPDX-License-Identifier: Apache-2.0
"""The result of a session: the counts of the collector and the kernel, the losses, the files.

A record is lost where it could not be written (the module counts it), where the ring buffer threw
it away (its own counts), or between the buffer and the file (written by the module, not read by
the collector). Events are lost, too, when a function that the module probes (probe/hooks.c) is
missing. A kernel may lack one. All are missing where somebody has switched the kernel's kprobes
off: the module tries one of its own when a session begins and when it ends.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etrace.capture.kmod.state import State
from etrace.capture.kmod.system.control import Counter, Phase, Status
from etrace.capture.kmod.system.output import Output
from etrace.capture.kmod.system.tracefs import BufferCounts
from etrace.errors import CaptureError
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


# ---- missing probes

LOOKED_UP = "are looked up again after the call"
CLOSED = "descriptors that close_range() closes have no Close"

#: probed function -> the loss without it
PROBES = {
    "security_path_rename": f"names of renames {LOOKED_UP}",
    "security_path_link": f"names of links {LOOKED_UP}",
    "security_path_symlink": f"names of symbolic links {LOOKED_UP}",
    "do_close_on_exec": "descriptors that an execution closes have no Close",
    "__x64_sys_close_range": CLOSED,
    "__ia32_sys_close_range": f"in 32-bit programs {CLOSED}",
    "__arm64_sys_close_range": CLOSED,
    "scm_detach_fds": "descriptors that come in messages are not counted",
    "exit_signals": "the largest memory of processes is not known",
    "task_sched_runtime": "the CPU time of processes is not known",
    "security_sb_mount": f"names of mounts {LOOKED_UP}",
    "security_sb_umount": f"names of unmounts {LOOKED_UP}",
}

#: probed in each session of each machine, PREEMPT_RT or not
ALWAYS = frozenset({"do_close_on_exec", "scm_detach_fds"})
PROBES_OFF = "kprobes of the kernel are switched off"
PROBES_OFF_HINT = (
    "sysctl kernel.ftrace_enabled=1 && echo 1 > /sys/kernel/debug/kprobes/enabled, "
    "then trace the build again"
)


def probes_are_off(missing: tuple[str, ...]) -> bool:
    """Whether no kprobe fires, although this kernel has the functions."""
    return set(missing) >= ALWAYS


def without_probes(missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the losses as text, each once."""
    texts = (PROBES.get(name, f"what {name} shows is lost") for name in missing)
    return tuple(dict.fromkeys(texts))


def describe_missing(missing: tuple[str, ...]) -> str:
    """Return the message for the user, empty when nothing is missing."""
    if not missing:
        return ""
    what = "; ".join(without_probes(missing))
    return (
        f"{PROBES_OFF}: {what}"
        if probes_are_off(missing)
        else f"this kernel lacks {', '.join(missing)}: {what}"
    )


# ---- losses and warnings


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
    if not probes_are_off(evidence.missing_probes):
        return ()
    return (Loss(1, describe_missing(evidence.missing_probes), at_least=True),)


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
    if missing and not probes_are_off(missing):
        found.append(describe_missing(missing))
    if evidence.changed_options:
        changed = ", ".join(evidence.changed_options)
        found.append(f"another tool set {changed} while the session ran")
    return (*evidence.remarks, *found)


def hint(evidence: Evidence) -> str:
    """Return how to avoid the loss."""
    if evidence.count(Counter.LOST_EVENTS):
        return f"give larger buffers: etrace start --buffer-size {evidence.buffer_kib * LARGER}"
    if probes_are_off(evidence.missing_probes):
        return PROBES_OFF_HINT
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


# ---- counts of several collectors

#: counts that are added; those that only one collector has are left out
SUMS = ("processes", "executions", "opens", "bytes", "records", "lost")
UNKNOWN = ("events", "lines", "duration_ns", "ended", "warnings")


def joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a collector and of those before it."""
    if not before:
        return after
    sums = {key: int(before.get(key, 0)) + int(after.get(key, 0)) for key in SUMS}
    collectors = int(before.get("collectors", 1)) + 1
    rest = {key: value for key, value in after.items() if key not in UNKNOWN}
    return {**rest, **sums, "collectors": collectors}


# ---- the files


def conclude(state: State, evidence: Evidence, more: dict[str, Any]) -> Ending:
    """Note the losses in the trace, and give the files their names."""
    found = losses(evidence)
    content = stats(evidence, {"root": state.root, "started": state.started, **more})
    remarks = warnings(evidence)
    if found:
        remarks = (*remarks, *_mark(state, sum(loss.n for loss in found)))
    # of a command that could not be executed there is its end
    nothing = not found and not content.get("executions" if more else "events", 1)
    result = Ending(
        state.output.directory / state.trace_name, False, content, found, remarks, hint(evidence)
    )
    return publish(state.output, state.trace, result, nothing=nothing)


def publish(output: Output, trace: tuple[int, int], result: Ending, *, nothing: bool) -> Ending:
    """Rename the finished trace `trace` and write its stats; return what came of it.

    With `nothing` traced it is removed instead, so that it replaces no older one.
    """
    remarks = result.warnings
    if nothing:
        try:
            output.discard()
        except CaptureError as error:
            remarks = (*remarks, f"{error.message}: an empty trace remains")
        return dataclasses.replace(result, warnings=remarks, hint="", published=False)
    try:
        aside = output.publish(result.trace.name, trace)
    except CaptureError as error:
        lost = f"; {agree(result.lost, 'event{s} {is|are} lost')}" if result.losses else ""
        raise CaptureError(
            f"the trace could not be renamed: {error.message}{lost}",
            f"the captured trace is in {output.capturing}, if it still exists: rename it",
        ) from error
    try:
        output.write_stats(json.dumps(result.stats).encode("ascii") + b"\n")
    except CaptureError as error:
        remarks = (*remarks, f"the stats could not be written: {error.message}")
    return dataclasses.replace(result, aside=aside, warnings=remarks)


def _mark(state: State, lost: int) -> tuple[str, ...]:
    """Note the loss in the trace for the parser; return the reason if that failed."""
    line = mark(lost)
    try:
        state.output.append(state.trace, zstd_frame(line) if state.is_compressed else line)
    except CaptureError as error:
        return (f"the loss could not be noted in the trace: {error.message}",)
    return ()


def mark(lost: int) -> bytes:
    """Return the line that says in a trace that events are lost; the kernel's own, of CPU 0."""
    return f"CPU:0 [LOST {lost} EVENTS]\n".encode()


def zstd_frame(content: bytes) -> bytes:
    """Return a frame of one raw block (RFC 8878, 3.1.1); content of at most 255 bytes."""
    single_segment, raw_and_last = 0x20, 1
    header = b"\x28\xb5\x2f\xfd" + bytes([single_segment, len(content)])
    return header + (len(content) << 3 | raw_and_last).to_bytes(3, "little") + content
