# SPDX-License-Identifier: Apache-2.0
"""Executions of the build, those included that only show what a process did before its exec."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given


def execs(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `executions`, by (upid, index)."""
    return chosen.executions(image, given)
