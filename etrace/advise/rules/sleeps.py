# SPDX-License-Identifier: Apache-2.0
"""Commands that only wait for a time to pass: sleep, alone or in a loop that polls."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds

IDS = ("sleeps",)
SLEEPERS = frozenset((b"sleep", b"usleep", b"gsleep"))


def find(build: Build) -> Iterator[Finding]:
    """Take the sleeps out."""
    elapsed = build.executions["elapsed_ns"]
    rows = [row for row in range(len(elapsed)) if build.program(row) in SLEEPERS]
    gain = build.gain(none_of(rows))
    if gain is None:
        return
    times = {row: elapsed[row] for row in rows}
    by = sorted({build.started_by(row) for row in rows})
    yield Finding(
        IDS[0],
        f"{count(len(rows), 'sleep')} of {seconds(sum(times.values()))}",
        f"Started by {', '.join(by[:3])}{' and others' if len(by) > 3 else ''}.",
        "Wait for what the script needs instead (a file's time, a process, a lock), or pass a"
        " smaller time. A sleep that makes the times of two files differ can be shorter on a file"
        " system that stores nanoseconds.",
        Sure.CERTAIN,
        "a sleep uses no processor; the trace does not show whether something relies on it",
        gain,
        build.commands(times),
        len(rows),
    )
