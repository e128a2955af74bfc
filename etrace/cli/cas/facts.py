# SPDX-License-Identifier: Apache-2.0
"""`cas stat`, `cas version` and their like: questions without options, about the whole database."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Facts, one, whole
from etrace.query import facts


class Fact:
    """A command without options of its own; `ask` answers it."""

    def __init__(self, ask: Callable[[Image], Answer]) -> None:
        self._ask = ask

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Add no options."""

    def answer(self, image: Image, _args: argparse.Namespace) -> Answer:
        """Answer the question."""
        return self._ask(image)


def _globs(keys: tuple[str, ...]) -> Fact:
    def ask(image: Image) -> Answer:
        found = [{"pattern": pattern} for pattern in facts.patterns(image, keys)]
        return Answer(Facts(lambda record: str(record["pattern"])), found)

    return Fact(ask)


stat = Fact(lambda image: whole(facts.stat(image)))
version = Fact(lambda image: whole(facts.version(image)))
config = Fact(lambda image: whole(facts.config(image)))
root_pid = Fact(lambda image: one("root_pid", facts.root_pid(image), feeds="pid"))
source_root = Fact(lambda image: one("source_root", os.fsdecode(facts.source_root(image))))
compiler_pattern = _globs(facts.COMPILERS)
linker_pattern = _globs(facts.LINKERS)
