# SPDX-License-Identifier: Apache-2.0
"""`cas binaries`: programs that the build ran."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Binaries
from etrace.query.executions import binaries


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas binaries`."""
    selecting.add_all(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths of programs."""
    return Answer(Binaries(), binaries(image, selecting.given(args)))
