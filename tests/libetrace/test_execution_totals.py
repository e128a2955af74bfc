# SPDX-License-Identifier: Apache-2.0
"""Executions in figures, against the same questions asked of each row in Python."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import event_streams
import pytest
from builders import TraceBuilder
from hypothesis import HealthCheck, given, settings
from libetrace.depend.execution_totals import Totals, count_processes, total_executions
from libetrace.image.file import Image, image_in_memory
from trace_texts import tables_of

GOLDEN = Path(__file__).parents[1] / "golden"
CLONE_THREAD = 0x10000


def image_of(trace: bytes) -> Image:
    return image_in_memory(tables_of([trace])[0])


def totals_by_row(image: Image, n_slowest: int) -> Totals:
    """Return the totals as Python counts them."""
    table = image["executions"]
    elapsed, children = table["elapsed_ns"], table["children.start"]
    commands = [row for row, index in enumerate(table["index"]) if index > 0]
    leaves = [row for row in commands if children[row] == children[row + 1]]
    ended = Counter[int]()
    for row in leaves:
        ended[table["binary"][row]] += elapsed[row]
    count = Counter(table["binary"][row] for row in leaves)
    return Totals(
        max((s + e for s, e in zip(table["start_ns"], elapsed, strict=True)), default=0),
        len(commands),
        sum(table["status"][row] not in (0, -1) for row in commands),
        sorted(leaves, key=lambda row: (-elapsed[row], row))[:n_slowest],
        sorted((binary, n, ended[binary]) for binary, n in count.items()),
    )


def processes_by_row(image: Image) -> int:
    children = image["children"]
    pairs = zip(children["upid"], children["flags"], strict=True)
    threads = {upid for upid, flags in pairs if flags & CLONE_THREAD}
    return len(set(image["executions"]["upid"]) - threads)


@pytest.mark.parametrize("n_slowest", [0, 1, 10, 1000])
def test_the_figures_of_a_real_build_are_those_of_its_rows(n_slowest: int) -> None:
    image = image_of(lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()))
    assert total_executions(image, n_slowest) == totals_by_row(image, n_slowest)
    assert count_processes(image) == processes_by_row(image) == 120


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(event_streams.inputs(event_streams.OUT_OF_ORDER))
def test_the_figures_of_any_trace_are_those_of_its_rows(inputs: list[bytes]) -> None:
    image = image_of(b"".join(inputs))
    assert total_executions(image, 3) == totals_by_row(image, 3)
    assert count_processes(image) == processes_by_row(image)


def test_threads_are_no_processes_and_failures_are_counted() -> None:
    trace = TraceBuilder().exec(1, "/bin/make").fork(1, 2).thread(1, 3).exit(3)
    trace.exec(2, "/bin/cc").exit(2, 1).exec(1, "/bin/true").exit(1)
    image = image_of(trace.trace())
    found = total_executions(image, 5)
    assert count_processes(image) == 2
    assert (found.n_commands, found.n_failed) == (3, 1)
    assert found == totals_by_row(image, 5)
