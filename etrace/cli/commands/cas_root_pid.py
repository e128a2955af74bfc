# SPDX-License-Identifier: Apache-2.0
"""`cas root_pid`: the process that the build began with."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.answer import Answer
from etrace.cli.shapes import one
from etrace.query.root_pid import root_pid


def declare(parser: argparse.ArgumentParser) -> None:
    """`cas root_pid` has no options of its own."""


def answer(image: Image, _args: argparse.Namespace) -> Answer:
    """Answer with a upid."""
    return one("root_pid", root_pid(image), feeds="pid")
