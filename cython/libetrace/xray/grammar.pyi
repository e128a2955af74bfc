# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from typing import Any

WHATS: tuple[str, ...]
TRANSITIONS: dict[int, int]

def verify(data: Any) -> list[tuple[int, str]]: ...
def records(
    data: Any,
) -> Iterator[tuple[int, str, int | None, int, int, int, int, int, int]]: ...
