# SPDX-License-Identifier: Apache-2.0
from array import array
from typing import NamedTuple

class Segments(NamedTuple):
    execution: array[int]
    begin_ns: array[int]
    end_ns: array[int]
    work_ns: array[int]
    job: array[int]
    waited: array[int]
    first: array[int]
    last: array[int]
    forked_by: array[int]

class Edges(NamedTuple):
    after: array[int]
    before: array[int]
    reason: array[int]
    path: array[int]

def cut_processes(
    row_start: memoryview | array[int],
    first: array[int],
    end: array[int],
    start_ns: array[int],
    end_ns: array[int],
    parent: array[int],
    child_start: array[int],
    child: array[int],
    writer_start: array[int],
    writer: array[int],
    is_scheduler: bytes | bytearray,
) -> tuple[Segments, Edges]: ...
def sort_edges(
    after: array[int], before: array[int], reason: array[int], path: array[int], n: int
) -> tuple[array[int], array[int], array[int], array[int]]: ...
