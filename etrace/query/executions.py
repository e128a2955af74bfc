# SPDX-License-Identifier: Apache-2.0
"""Executions, commands (executions with a program) and programs."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query.given import chosen
from etrace.query.given.chosen import EVERYTHING, Given
from etrace.spec.database import NONE


def execs(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions`, by (upid, index), also those before the first exec."""
    return chosen.executions(image, given)


def commands(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions` that have a program, by (upid, index)."""
    binary = image["executions"]["binary"]
    return [row for row in execs(image, given) if binary[row] != NONE]


def binaries(image: Image, given: Given = EVERYTHING) -> list[bytes]:
    """Return the distinct paths of programs that ran, sorted as bytes."""
    binary = image["executions"]["binary"]
    rows = {binary[row] for row in execs(image, given)} - {NONE}
    return [image.path_string(row) for row in sorted(rows)]
