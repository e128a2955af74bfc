# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import final

FIRST_LINE: bytes

@final
class Source:
    @property
    def size(self) -> int: ...
    @classmethod
    def from_fd(cls, fd: int, limit: int = ...) -> Source: ...
    @classmethod
    def from_bytes(cls, data: bytes) -> Source: ...
    @classmethod
    def merge(cls, parts: Sequence[Source]) -> Source: ...
    def locate(self, lines: Sequence[int]) -> list[tuple[int, int]]: ...
