# SPDX-License-Identifier: Apache-2.0
"""`cas ref_files`: paths of all files that were opened."""

from __future__ import annotations

import argparse

from libetrace.image import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import Paths
from etrace.query.ref_files import ref_files


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas ref_files` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer."""
    return Answer(Paths(), ref_files(image))
