# SPDX-License-Identifier: Apache-2.0
from array import array
from typing import NamedTuple

from libetrace.image.file import Image

class Totals(NamedTuple):
    elapsed_ns: int
    n_commands: int
    n_failed: int
    cpu_ns: int
    slowest: list[int]
    programs: list[tuple[int, int, int, int, int]]

def total_executions(image: Image, n_slowest: int) -> Totals: ...
def find_thread_owners(image: Image) -> array[int]: ...
def find_parents(image: Image) -> bytes: ...
def count_processes(image: Image) -> int: ...
def wrapping_shells(
    upid: memoryview | array[int],
    parent: memoryview | array[int],
    binary: memoryview | array[int],
    is_shell: memoryview | array[int] | bytes | bytearray,
    out: memoryview | array[int],
) -> None: ...
