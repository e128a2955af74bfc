# SPDX-License-Identifier: Apache-2.0
"""`cas compilation_info_for`: how files were compiled."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Compilations
from etrace.query.compilation_info_for import compilation_info_for


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas compilation_info_for`."""
    selecting.add_all(parser, files=True)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with compilations."""
    return Answer(Compilations(image), compilation_info_for(image, selecting.given(args)))
