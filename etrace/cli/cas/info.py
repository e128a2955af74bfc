# SPDX-License-Identifier: Apache-2.0
"""`cas info`: facts about the whole database."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Facts, one, whole
from etrace.query import facts


def _globs(found: list[str]) -> Answer:
    return Answer(Facts(lambda r: str(r["pattern"])), [{"pattern": glob} for glob in found])


#: part -> its value, and the answer when it is the only one
PARTS: Mapping[str, tuple[Callable[[Image], Any], Callable[[Any], Answer]]] = {
    "counts": (facts.stat, whole),
    "root-pid": (facts.root_pid, lambda pid: one("root_pid", pid, feeds="pid")),
    "source-root": (
        lambda image: os.fsdecode(facts.source_root(image)),
        lambda root: one("source_root", root),
    ),
    "versions": (facts.version, whole),
    "configuration": (facts.config, whole),
    "compilers": (lambda image: facts.patterns(image, facts.COMPILERS), _globs),
    "linkers": (lambda image: facts.patterns(image, facts.LINKERS), _globs),
}
EPILOG = """\
counts: processes, executions, files, ..; root-pid: the first process; source-root: the directory
where the build began; versions: of the database and of etrace; configuration: what `cas pp` uses;
compilers, linkers: globs of the programs that count as such.

examples:
  cas info
  cas info root-pid procref --with-children
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `cas info`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "parts", metavar="PART", nargs="*", choices=(*PARTS, []), help="only these facts"
    )


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with one part unchanged, or with several in one record."""
    chosen = args.parts or list(PARTS)
    values = {part: PARTS[part][0](image) for part in chosen}
    if len(values) == 1:
        return PARTS[chosen[0]][1](values[chosen[0]])
    return whole({part.replace("-", "_"): value for part, value in values.items()})
