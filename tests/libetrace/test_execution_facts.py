# SPDX-License-Identifier: Apache-2.0
"""Executions in figures, against the same questions asked of each row in Python."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import event_streams
import pytest
from builders import TraceBuilder
from databases import tables_of
from hypothesis import HealthCheck, given, settings
from libetrace.depend.execution_facts import (
    Totals,
    count_processes,
    find_parents,
    find_thread_owners,
    total_executions,
)
from libetrace.image.file import Image, image_in_memory

GOLDEN = Path(__file__).parents[1] / "golden"
CLONE_THREAD = 0x10000


def image_of(trace: bytes) -> Image:
    return image_in_memory(tables_of([trace])[0])


def owners_by_row(image: Image) -> list[int]:
    """Return the execution that each belongs to: a thread's begin to the one that cloned it."""
    table, children = image["executions"], image["children"]
    cloner = dict[int, int]()
    for row in range(table.n_rows):
        for at in table.span("children.start", row):
            if children["flags"][at] & CLONE_THREAD and children["execution"][at] >= 0:
                cloner[children["execution"][at]] = row
    owners = []
    for row in range(table.n_rows):
        way = [row]
        while way[-1] in cloner and cloner[way[-1]] not in way:
            way.append(cloner[way[-1]])
        owners.append(way[-1])
    return owners


def work_by_row(image: Image) -> list[int]:
    """Return CPU times, or elapsed times without those beside the writer of a pipe."""
    table = image["executions"]
    start, elapsed, parent = table["start_ns"], table["elapsed_ns"], table["parent"]
    edges = {
        (writer, image["pipe_readers"]["execution"][at])
        for writer in range(table.n_rows)
        for at in table.span("readers.start", writer)
    }
    waited = [0] * table.n_rows
    for writer, reader in edges:
        if parent[writer] == parent[reader] != -1 and (reader, writer) not in edges:
            end = start[writer] + elapsed[writer]
            waited[reader] = max(waited[reader], end - start[reader])
    work = [total - min(total, wait) for total, wait in zip(elapsed, waited, strict=True)]
    for row, used in cpu_of_rows(image).items():
        work[row] = used
    return work


def cpu_of_rows(image: Image) -> dict[int, int]:
    """Return the CPU time of the executions of which it is known."""
    if "usage" not in image.tables:
        return {}
    pairs = enumerate(zip(image["usage"]["user_ns"], image["usage"]["system_ns"], strict=True))
    return {row: sum(used) for row, used in pairs if -1 not in used}


def totals_by_row(image: Image, n_slowest: int) -> Totals:
    """Return the totals as Python counts them."""
    table, owners, work = image["executions"], owners_by_row(image), work_by_row(image)
    elapsed, flags = table["elapsed_ns"], image["children"]["flags"]
    parents = {
        owners[row]
        for row in range(table.n_rows)
        if any(not flags[at] & CLONE_THREAD for at in table.span("children.start", row))
    }
    commands = [row for row, binary in enumerate(table["binary"]) if binary != -1]
    leaves = [row for row in commands if row not in parents]
    assert [not each for each in find_parents(image)] == [
        row not in parents for row in range(table.n_rows)
    ]
    cpu = cpu_of_rows(image)
    ended, worked, used = Counter[int](), Counter[int](), Counter[int]()
    for row in leaves:
        ended[table["binary"][row]] += elapsed[row]
        worked[table["binary"][row]] += work[row]
        used[table["binary"][row]] += cpu.get(row, 0)
    slow = [row for row in commands if row not in parents or row in cpu]
    count = Counter(table["binary"][row] for row in leaves)
    ends = [s + e for s, e in zip(table["start_ns"], elapsed, strict=True)]
    return Totals(
        max(ends, default=0) - min(table["start_ns"], default=0),
        len(commands),
        sum(table["status"][row] not in (0, -1) for row in commands),
        sum(cpu.values()) if cpu else -1,
        sorted(slow, key=lambda row: (-work[row], row))[:n_slowest],
        sorted(
            (binary, n, ended[binary], worked[binary], used[binary]) for binary, n in count.items()
        ),
    )


def processes_by_row(image: Image) -> int:
    table, children = image["executions"], image["children"]
    threads = {
        children["upid"][at]
        for row in range(table.n_rows)
        for at in table.span("children.start", row)
        if children["flags"][at] & CLONE_THREAD and children["execution"][at] != row
    }  # a process that cloned itself, which only a damaged trace has, is one
    return len(set(table["upid"]) - threads)


@pytest.mark.parametrize("n_slowest", [0, 1, 10, 1000])
def test_the_figures_of_a_real_build_are_those_of_its_rows(n_slowest: int) -> None:
    image = image_of(lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()))
    assert total_executions(image, n_slowest) == totals_by_row(image, n_slowest)
    assert count_processes(image) == processes_by_row(image) == 120


def test_a_program_that_started_others_is_slow_by_its_own_cpu_time() -> None:
    first, second, third = (number << 22 | 1 for number in (1, 2, 3))
    trace = TraceBuilder().exec(first, "/usr/bin/make", ["make"]).fork(first, second)
    trace.exec(second, "/usr/bin/m4", ["m4"]).fork(second, third)
    trace.exec(third, "/usr/bin/cat", ["cat"]).usage(third, 20, 2).exit(third)
    image = image_of(trace.usage(second, 500, 50).exit(second).exit(first).trace())
    found = total_executions(image, 10)
    assert found == totals_by_row(image, 10)
    binary, paths = image["executions"]["binary"], image.path_string
    assert [paths(binary[row]) for row in found.slowest] == [b"/usr/bin/m4", b"/usr/bin/cat"]
    assert [(paths(row), cpu) for row, _, _, _, cpu in found.programs] == [(b"/usr/bin/cat", 22)]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(event_streams.inputs(event_streams.OUT_OF_ORDER))
def test_the_figures_of_any_trace_are_those_of_its_rows(inputs: list[bytes]) -> None:
    image = image_of(b"".join(inputs))
    assert total_executions(image, 3) == totals_by_row(image, 3)
    assert count_processes(image) == processes_by_row(image)
    assert list(find_thread_owners(image)) == owners_by_row(image)


def test_threads_are_no_processes_and_failures_are_counted() -> None:
    trace = TraceBuilder().exec(1, "/bin/make").fork(1, 2).thread(1, 3).exit(3)
    trace.exec(2, "/bin/cc").exit(2, 1).exec(1, "/bin/true").exit(1)
    image = image_of(trace.trace())
    found = total_executions(image, 5)
    assert count_processes(image) == 2
    assert (found.n_commands, found.n_failed) == (3, 1)
    assert found == totals_by_row(image, 5)


def test_a_thread_of_a_thread_belongs_to_the_process_and_so_does_what_it_starts() -> None:
    trace = TraceBuilder().exec(1, "/bin/ld.lld").thread(1, 2).thread(2, 3).fork(3, 4)
    image = image_of(trace.exec(4, "/bin/cat").exit(4).exit(3).exit(2).exit(1).trace())
    assert list(image["executions"]["upid"]) == [1, 1, 2, 3, 4, 4]
    assert list(find_thread_owners(image)) == [0, 1, 1, 1, 4, 5]
    assert list(find_parents(image)) == [0, 1, 0, 0, 0, 0]


def test_a_program_with_threads_starts_no_other() -> None:
    trace = TraceBuilder().exec(1, "/bin/ld.lld").thread(1, 2).exit(2).exit(1)
    image = image_of(trace.trace())
    assert total_executions(image, 5).slowest == [1]


def test_the_reader_of_a_pipe_that_waited_ranks_after_its_writer() -> None:
    trace = TraceBuilder().exec(1, "/bin/gcc").pipe(1, 3, 4)
    begin = trace.clock_ns
    trace.fork(1, 2).dup(2, 4, 1).close(2, 3).close(2, 4).exec(2, "/lib/cc1")
    trace.fork(1, 3).dup(3, 3, 0).close(3, 3).close(3, 4).exec(3, "/bin/as")
    trace.close(1, 3).close(1, 4).at(begin + 900_000).exit(2).at(begin + 950_000).exit(3).exit(1)
    image = image_of(trace.trace())
    binary = [image.path_string(image["executions"]["binary"][row]) for row in (3, 5)]
    assert binary == [b"/lib/cc1", b"/bin/as"]
    assert total_executions(image, 5).slowest == [3, 5]
    assert total_executions(image, 5) == totals_by_row(image, 5)
