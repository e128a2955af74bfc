# SPDX-License-Identifier: Apache-2.0
"""`cas version`: versions of the database and of etrace."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import whole
from etrace.query.version import version


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas version` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with three versions."""
    return whole(version(image))
