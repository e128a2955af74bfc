# SPDX-License-Identifier: Apache-2.0
from array import array

from libetrace.image.file import Image

TABLES: tuple[str, ...]

def build_graph(
    image: Image, *, wrapped: bool = False, programs: bool = False
) -> dict[str, dict[str, array[int]]]: ...
