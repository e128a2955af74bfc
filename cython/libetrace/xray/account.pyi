# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from typing import Any

BY: dict[str, int]
ENDINGS: tuple[str, ...]

class Account:
    rows: list[tuple[int, ...]]
    nodes: list[tuple[int, int, int, int, int]] | None
    roots: list[tuple[int, int]] | None
    n_calls: int
    threads: list[tuple[int, int, int]]
    logs: list[dict[str, Any]]
    @property
    def n_unmatched_exits(self) -> int: ...
    @property
    def functions(self) -> list[int]: ...
    @property
    def kinds(self) -> list[int]: ...
    @property
    def n_deduced(self) -> int: ...
    @property
    def n_unfinished(self) -> int: ...
    @property
    def n_backwards(self) -> int: ...
    def columns(self) -> list[tuple[str, str, bytearray]]: ...

def describe(data: Any) -> dict[str, Any]: ...
def account(
    logs: Any,
    *,
    by: str = "function",
    functions: Iterable[int] | None = None,
    threads: Iterable[int] | None = None,
    shortest: int = 0,
    from_tsc: int = 0,
    until_tsc: int = ...,
    deduce: bool = False,
    calls: bool = False,
    nodes: bool = False,
    split: bool = False,
    percentiles: bool = True,
    position: Any = None,
) -> Account: ...
