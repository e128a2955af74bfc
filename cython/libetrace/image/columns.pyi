# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import final

from libetrace.image.file import Image

@final
class Columns:
    def __init__(self, image: Image, schema: Sequence[tuple[str, str, str]]) -> None: ...
