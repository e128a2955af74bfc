# SPDX-License-Identifier: Apache-2.0
"""`cas source_root`: the directory in which the build was started."""

from __future__ import annotations

import argparse
import os

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import one
from etrace.query.source_root import source_root


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas source_root` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with a path."""
    return one("source_root", os.fsdecode(source_root(image)))
