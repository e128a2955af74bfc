# SPDX-License-Identifier: Apache-2.0
from array import array
from collections.abc import Sequence

def run_network(
    start: array[int],
    before: array[int],
    work: array[float],
    traced: array[int],
    walker: array[int],
    place: array[float],
    frees: array[int],
    computes: bytes,
    pools: array[int],
    is_make: bytes,
    sizes: Sequence[int],
    n_processors: int | None,
) -> tuple[array[float], array[float], array[int], array[int]]: ...
def find_slacks(
    start: array[int],
    before: array[int],
    order: array[int],
    end: array[float],
    work: array[float],
) -> array[float]: ...
