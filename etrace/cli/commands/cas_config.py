# SPDX-License-Identifier: Apache-2.0
"""`cas config`: the configuration that `cas pp` works with."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import whole
from etrace.query.config import config


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas config` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with the keys of .bas_config."""
    return whole(config(image))
