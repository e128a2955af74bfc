# SPDX-License-Identifier: Apache-2.0
"""Commands of the build: executions that have a program."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given
from etrace.spec.database import NONE


def commands(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions`, by (upid, index)."""
    binary = image["executions"]["binary"]
    return [row for row in chosen.executions(image, given) if binary[row] != NONE]
