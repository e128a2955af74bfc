# SPDX-License-Identifier: Apache-2.0
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, final

from typing_extensions import Buffer

from libetrace.core.errors import Error
from libetrace.image.file import Image

_Step = (
    tuple[Literal["root"], int]
    | tuple[Literal["enter"], int, int]
    | tuple[Literal["pipe"], int, int]
    | tuple[Literal["fork"], int, int, int]
    | tuple[Literal["leave"], int, int, int]
)

class GraphError(Error, ValueError): ...

@final
class Graph:
    n_paths: int
    n_executions: int
    n_processes: int
    n_opens: int
    is_reversed: bool
    def __init__(
        self,
        image: Image,
        *,
        reverse: bool = False,
        wrapped: bool = False,
        programs: bool = False,
        tables: Mapping[str, Any] | None = None,
    ) -> None: ...
    def process_of_execution(self, execution: int) -> int: ...
    def use(self, row: int) -> tuple[int, int]: ...
    def open_of(self, row: int) -> int: ...
    def is_producible(self, path: int) -> bool: ...
    def closure(
        self,
        roots: Iterable[int],
        *,
        stops: Buffer | None = None,
        modules: Buffer | None = None,
        excluded: Buffer | None = None,
        ordered: bool = True,
        pipes: bool = True,
        nearest: bool = False,
    ) -> Closure: ...

@final
class Closure:
    graph: Graph
    @property
    def paths(self) -> array[int]: ...
    @property
    def entered(self) -> array[int]: ...
    @property
    def left(self) -> array[int]: ...
    @property
    def executions(self) -> array[int]: ...
    def use_of(self, path: int) -> int: ...
    def __contains__(self, path: int, /) -> bool: ...
    def is_in_time(self, chain: Sequence[_Step]) -> bool: ...
    def chain(self, path: int) -> list[_Step]: ...
