# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from typing import Any, final

from libetrace.image.file import Image
from libetrace.image.header import ColumnSchema

COLUMNS: list[tuple[str, str, ColumnSchema]]

@final
class Columns:
    def __init__(
        self, image: Image, tables: Mapping[str, Any] | None = None, *, is_checked: bool = True
    ) -> None: ...
