# SPDX-License-Identifier: Apache-2.0
"""Executions of the build, those that have a program, and the programs."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given
from etrace.spec.database import NONE


def execs(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions`, by (upid, index); some show what came before an exec."""
    return chosen.executions(image, given)


def commands(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions` that have a program, by (upid, index)."""
    binary = image["executions"]["binary"]
    return [row for row in execs(image, given) if binary[row] != NONE]


def binaries(image: Image, given: Given = EVERYTHING) -> list[bytes]:
    """Return the paths of programs that ran, each once, in order of bytes."""
    binary = image["executions"]["binary"]
    rows = {binary[row] for row in execs(image, given)} - {NONE}
    return [image.path_string(row) for row in sorted(rows)]
