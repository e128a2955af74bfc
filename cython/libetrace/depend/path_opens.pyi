# SPDX-License-Identifier: Apache-2.0
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, final

from libetrace.image.file import Image, Table

LOADABLE: int
PLUGIN: int
READS: int
WRITES: int
TAKES_ALL: int
TAKES_ARCHIVES: int

@final
class PathOpens:
    def __init__(
        self,
        image: Image,
        kind_of: Callable[[int], int] | None = None,
        is_taker: Callable[[int], bool] | None = None,
        is_named: Callable[[int], bool] | None = None,
        taking_of: Callable[[int], int] | None = None,
    ) -> None: ...
    def uses(self) -> bytes: ...
    def is_program(self, path: int) -> bool: ...
    def is_written(self, path: int) -> bool: ...
    def first(self, path: int) -> int: ...
    def existing(self, path: int) -> Iterator[int]: ...
    def lasting_paths(self) -> Iterator[int]: ...
    def is_only_loaded(self, path: int) -> bool: ...
    def taken_by(self, executions: Iterable[int]) -> bytearray: ...

class OwnedPaths(NamedTuple):
    start: array[int]
    path: array[int]
    n_opens: array[int]

def owned_paths(
    tables: Iterable[Table], owner: array[int], n_owners: int, left_out: int
) -> OwnedPaths: ...
