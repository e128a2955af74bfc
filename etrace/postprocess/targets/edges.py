# SPDX-License-Identifier: Apache-2.0
"""What a ninja ran, and its log -> the outputs that each command was run for.

A command is an edge's when its hash is in the log, it ended with status 0 (ninja logs no other
command, so what the log has of one that failed is of an earlier build), and its times are possible:
ninja notes a start before it starts a command and the end after that ended, both since it began to
build, which is after its own start. When several edges of the log are possible, or one edge is for
several commands, none of them is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from etrace.postprocess.targets.ninja_log import RESPONSES, Edge, NinjaLog

MS = 1_000_000
#: each of ninja's two stamps is rounded down to a millisecond, and so is the beginning
SLACK_NS = 2 * MS


@dataclass(frozen=True, slots=True)
class Job:
    """A process that ninja started to run a command; times in ns since the trace began.

    `responses`: what the response files of the command held.
    """

    process: int
    command: bytes
    start_ns: int
    end_ns: int
    responses: tuple[bytes, ...] = ()


def is_possible(edge: Edge, job: Job, ninja_start_ns: int) -> bool:
    """Tell whether ninja can have begun to build at a time that fits the stamps of both."""
    earliest = max(ninja_start_ns, job.end_ns - edge.end_ms * MS) - SLACK_NS
    return earliest <= job.start_ns - edge.start_ms * MS + SLACK_NS


def find_edges(log: NinjaLog, jobs: Iterable[Job], ninja_start_ns: int) -> Mapping[int, Edge]:
    """Return the edge of each process of which it is known."""
    found: dict[int, Edge] = {}
    for job in jobs:
        possible = [edge for edge in _named(log, job) if is_possible(edge, job, ninja_start_ns)]
        if len(possible) == 1:
            found[job.process] = possible[0]
    claims = Counter(map(id, found.values()))
    return {process: edge for process, edge in found.items() if claims[id(edge)] == 1}


def _named(log: NinjaLog, job: Job) -> Iterator[Edge]:
    """Yield the edges of the log with the command of a job."""
    yield from log.find(job.command)
    for content in job.responses:
        yield from log.find(job.command + RESPONSES + content)
