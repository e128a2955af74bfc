# SPDX-License-Identifier: Apache-2.0
"""`cas compiler_pattern`: globs of the programs that count as compilers."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import Facts
from etrace.query.config import COMPILERS, patterns


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas compiler_pattern` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with globs."""
    found = [{"pattern": pattern} for pattern in patterns(image, COMPILERS)]
    return Answer(Facts(lambda record: str(record["pattern"])), found)
