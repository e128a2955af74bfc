# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterable, Iterator
from typing import final

from typing_extensions import Buffer

from libetrace.image.file import Image

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
        takers: Buffer | None = None,
    ) -> None: ...
    def uses(self) -> bytes: ...
    def is_program(self, path: int) -> bool: ...
    def is_written(self, path: int) -> bool: ...
    def first(self, path: int) -> int: ...
    def existing(self, path: int) -> Iterator[int]: ...
    def written_paths(self) -> Iterator[int]: ...
    def is_only_loaded(self, path: int) -> bool: ...
    def taken_by(self, executions: Iterable[int]) -> bytearray: ...
