# SPDX-License-Identifier: Apache-2.0
"""`cas stat`: how much there is in the database."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import whole
from etrace.query.stat import stat


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas stat` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with counts; `-` stands for what `cas pp` has to look for first."""
    return whole(stat(image))
