# SPDX-License-Identifier: Apache-2.0
"""`cas revmoddeps`: the linked modules that depend on linked modules."""

from __future__ import annotations

import argparse

from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.options import kinds as kind_options
from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Paths
from etrace.query.classes.file_kinds import LASTING, FileKinds
from etrace.query.revmoddeps import revmoddeps

#: it reads an image that was not scanned: see program.run_pipeline
CHECKS_ROWS = True


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas revmoddeps`."""
    walking.add_targets(parser)
    walking.add_rules(parser)
    kind_options.add_kinds(parser)
    selecting.add_filter(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths."""
    names, rules = walking.targets(args), walking.rules(args)
    rows = revmoddeps(Dependencies(image), names, rules, is_exact=not args.fed)
    kept = kind_options.shown(FileKinds(image).of, args, selecting.kept(image, args, rows), LASTING)
    return Answer(Paths(), [image.path_string(row) for row in kept])
