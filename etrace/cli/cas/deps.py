# SPDX-License-Identifier: Apache-2.0
"""`cas deps`: everything that files were made of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.options import kinds as kind_options
from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.options.kinds import KindOf
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Executions, Facts, Files, Paths
from etrace.query.classes.file_kinds import USUAL, FileKinds
from etrace.query.deps import Walked, walk

#: it reads an image that was not scanned: see program.run_pipeline
CHECKS_ROWS = True


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas deps`."""
    walking.add_targets(parser)
    walking.add_rules(parser)
    kind_options.add_kinds(parser)
    selecting.add_filter(parser)
    group = parser.add_mutually_exclusive_group()
    add = group.add_argument
    add("--commands", action="store_true", help="list the commands that made them instead")
    add(
        "-G",
        "--dep-graph",
        dest="graph",
        action="store_true",
        help="print the dependency graph as JSON",
    )
    add("--dot", action="store_true", help="print the dependency graph for dot(1)")
    add(
        "--cdm",
        action="store_true",
        help="print the compiled sources of each FILE, one pair on each line",
    )
    add(
        "--rdm",
        action="store_true",
        help="print the linked modules that need each FILE, one pair on each line",
    )


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths, or in the form that an option asks for."""
    dependencies, rules = Dependencies(image), walking.rules(args)
    names = walking.targets(args)
    if args.cdm or args.rdm:
        return Answer(Facts(_pairs), [_map(dependencies, args)], single=True)
    walked = walk(dependencies, names, rules, is_exact=not args.fed)
    if args.commands:
        return Answer(Executions(image), walked.commands)
    kind_of = FileKinds(image).among(walked.executions)
    if args.graph or args.dot:
        return _graph(image, args, walked, kind_of)
    kept = selecting.kept(image, args, walked.paths)
    paths = kind_options.shown(kind_of, args, kept, USUAL)
    if args.details or args.fmt or args.sorting_key:
        uses = [(path, walked.use_of(path)) for path in paths]
        return Answer(Files(image, kind_of), uses)
    return Answer(Paths(), [image.path_string(path) for path in paths])


def _graph(image: Image, args: argparse.Namespace, walked: Walked, kind_of: KindOf) -> Answer:
    from libetrace.depend.makers import Makers

    from etrace.query.dependency_graph import dot, record

    makers = Makers(image, walked.closures)
    if args.dot:
        lines = dot(makers, kind_options.view(kind_of, args, USUAL))
        return Answer(Facts(_line), [{"line": line} for line in lines])
    return Answer(Facts(json.dumps), [record(makers)], single=True)


def _line(record: Mapping[str, Any]) -> str:
    return str(record["line"])


def _pairs(record: Mapping[str, Any]) -> str:
    """Return `key TAB value` for each value of each key."""
    return "\n".join(f"{key}\t{value}" for key, values in record.items() for value in values)


def _map(dependencies: Dependencies, args: argparse.Namespace) -> Mapping[str, Any]:
    from etrace.query.compilation_map import compilation_map, reverse_map
    from etrace.query.given.targets import find_targets

    rows = find_targets(dependencies.image, walking.targets(args), is_exact=not args.fed)
    of = compilation_map if args.cdm else reverse_map
    return of(dependencies, rows, walking.rules(args))
