# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

from libetrace.image.file import Image

class Totals(NamedTuple):
    elapsed_ns: int
    n_commands: int
    n_failed: int
    slowest: list[int]
    programs: list[tuple[int, int, int, int]]

def total_executions(image: Image, n_slowest: int) -> Totals: ...
