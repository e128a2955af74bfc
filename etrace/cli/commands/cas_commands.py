# SPDX-License-Identifier: Apache-2.0
"""`cas commands`: executions that have a program."""

from __future__ import annotations

import argparse

from libetrace.image import Image

from etrace.cli import selecting
from etrace.cli.answer import Answer
from etrace.cli.shapes import Executions
from etrace.query.commands import commands


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas commands`."""
    selecting.add_all(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions."""
    return Answer(Executions(image), commands(image, selecting.given(args)))
