# SPDX-License-Identifier: Apache-2.0
from typing import Any

def file_name(
    line: Any, line_str: Any, strings: Any, table: int, number: int, is_big: bool = False
) -> bytes | None: ...
def first_lines(
    line: Any, wanted: Any, reach: int, is_big: bool = False
) -> dict[int, tuple[int, int, int]]: ...
