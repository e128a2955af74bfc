# SPDX-License-Identifier: Apache-2.0
from typing import final

from libetrace.image.columns import Columns

@final
class Exporter:
    def __init__(self, columns: Columns) -> None: ...
    @property
    def n_entries(self) -> int: ...
    def entries(self, begin: int, end: int) -> bytes: ...
