# SPDX-License-Identifier: Apache-2.0
from array import array
from typing import final

from typing_extensions import Buffer

@final
class Lookup:
    def __init__(self, start: Buffer, data: Buffer) -> None: ...
    @property
    def n_rows(self) -> int: ...
    def find(self, text: Buffer) -> int: ...
    def prefixed(self, prefix: Buffer) -> tuple[int, int]: ...

def resolve_strings(
    path_strings: Buffer, originals: Buffer, paths: Buffer, n_strings: int
) -> array[int]: ...
