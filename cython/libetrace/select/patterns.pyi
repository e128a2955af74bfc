# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, final, overload

from typing_extensions import Buffer

_Out = TypeVar("_Out", bound=Buffer)

N_PATTERNS_MAX: int

@final
class PatternSet:
    def __init__(self, patterns: Sequence[bytes | str]) -> None: ...
    def __len__(self) -> int: ...
    @property
    def patterns(self) -> tuple[bytes, ...]: ...
    @property
    def row_bytes(self) -> int: ...
    def match(self, text: Buffer) -> bytes: ...
    @overload
    def match_rows(
        self,
        strings_start: Buffer,
        strings_bytes: Buffer,
        argv_start: Buffer,
        arguments: Buffer,
        out: None = None,
    ) -> bytearray: ...
    @overload
    def match_rows(
        self,
        strings_start: Buffer,
        strings_bytes: Buffer,
        argv_start: Buffer,
        arguments: Buffer,
        out: _Out,
    ) -> _Out: ...

def precompute_command_patterns(
    patterns: Sequence[bytes | str],
    processes: Mapping[Any, Sequence[Mapping[str, Sequence[str] | Sequence[bytes]]]],
) -> dict[tuple[Any, int], bytes] | None: ...
