# SPDX-License-Identifier: Apache-2.0
from typing import Any

def find(
    info: Any, abbrev: Any, addr: Any, wanted: Any, is_big: bool = False, address_base: int = 0
) -> dict[int, int]: ...
def describe(
    info: Any, abbrev: Any, offsets: Any, is_big: bool = False
) -> list[tuple[int | None, int | None, int | None, int | None] | None]: ...
