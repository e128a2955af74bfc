# SPDX-License-Identifier: Apache-2.0
"""`cas execs`: all executions, also those before the first exec."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Executions
from etrace.query.executions import execs


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas execs`."""
    selecting.add_all(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions."""
    return Answer(Executions(image), execs(image, selecting.given(args)))
