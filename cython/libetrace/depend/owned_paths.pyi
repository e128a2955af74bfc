# SPDX-License-Identifier: Apache-2.0
from array import array
from collections.abc import Iterable
from typing import NamedTuple

from libetrace.image.file import Table

class OwnedPaths(NamedTuple):
    start: array[int]
    path: array[int]
    n_opens: array[int]

def owned_paths(
    tables: Iterable[Table], owner: array[int], n_owners: int, left_out: int
) -> OwnedPaths: ...
