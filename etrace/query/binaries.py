# SPDX-License-Identifier: Apache-2.0
"""Programs that the build ran."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given
from etrace.spec.database import NONE


def binaries(image: Image, given: Given = EVERYTHING) -> list[bytes]:
    """Return their paths, each once, in order of bytes."""
    binary = image["executions"]["binary"]
    rows = {binary[row] for row in chosen.executions(image, given)} - {NONE}
    return [image.path_string(row) for row in sorted(rows)]
