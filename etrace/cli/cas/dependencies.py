# SPDX-License-Identifier: Apache-2.0
"""`cas deps` and its relatives: what files and linked modules were made of.

What `cas deps` does not need is imported where it is used: it starts without dataclasses.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.ending import one_line, printable, say
from etrace.cli.opening import open_found
from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.options.common import add_database, add_examples, add_format, add_hash
from etrace.cli.options.selection import KindOf
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Executions, Facts, Files, Paths
from etrace.query.dependencies import Walked, moddeps, rdeps, revmoddeps, walk
from etrace.query.rows.file_kinds import LASTING, USUAL, FileKinds
from etrace.query.rows.records import Records

if TYPE_CHECKING:
    from etrace.query.why import Why

# ---- deps ----


def _declare_walk(parser: argparse.ArgumentParser) -> None:
    """Add the options of a query that walks over dependencies and lists files."""
    walking.add_targets(parser)
    walking.add_rules(parser)
    selecting.add_kinds(parser)
    selecting.add_filter(parser)
    add_hash(parser)


def declare_moddeps(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas moddeps`."""
    _declare_walk(parser)
    add_examples(parser, "cas moddeps src/lvm.h", "cas moddeps src/lvm.h --json")


def declare_revmoddeps(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas revmoddeps`."""
    _declare_walk(parser)
    add_examples(parser, "cas revmoddeps src/liblua.a", "cas revmoddeps src/liblua.a --count")


def declare_deps(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas deps`."""
    _declare_walk(parser)
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
    add_examples(parser, "cas deps src/lua --count", "cas deps src/lua --kind source --relative")


def answer_deps(image: Image, args: argparse.Namespace) -> Answer:
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
    paths = selecting.shown(kind_of, args, kept, USUAL)
    if args.details or args.fmt or args.sorting_key:
        uses = [(path, walked.use_of(path)) for path in paths]
        return Answer(Files(image, kind_of), uses)
    return Answer(Paths(), [image.path_string(path) for path in paths])


def _graph(image: Image, args: argparse.Namespace, walked: Walked, kind_of: KindOf) -> Answer:
    from libetrace.depend.makers import Makers

    from etrace.query.dependencies import dot, record

    makers = Makers(image, walked.closures)
    if args.dot:
        lines = dot(makers, selecting.view(kind_of, args, USUAL))
        return Answer(Facts(_line), [{"line": line} for line in lines])
    return Answer(Facts(json.dumps), [record(makers)], single=True)


def _line(record: Mapping[str, Any]) -> str:
    return str(record["line"])


def _pairs(record: Mapping[str, Any]) -> str:
    """Return `key TAB value` for each value of each key."""
    return "\n".join(f"{key}\t{value}" for key, values in record.items() for value in values)


def _map(dependencies: Dependencies, args: argparse.Namespace) -> Mapping[str, Any]:
    from etrace.query.compilations import compilation_map, reverse_map
    from etrace.query.select.file_names import find_files

    rows = find_files(dependencies.image, walking.targets(args), is_exact=not args.fed)
    of = compilation_map if args.cdm else reverse_map
    return of(dependencies, rows, walking.rules(args))


# ---- rdeps, moddeps, revmoddeps ----


def declare_rdeps(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas rdeps`."""
    _declare_walk(parser)
    walking.add_copies(parser)
    parser.add_argument(
        "--recursive", action="store_true", help="accepted for compatibility; it is the default"
    )
    add_examples(parser, "cas rdeps src/lvm.h", "cas rdeps src/lvm.h --recursive --count")


def _shown(image: Image, args: argparse.Namespace, rows: Sequence[int]) -> Answer:
    """Answer with the paths of those rows that the options select."""
    kept = selecting.shown(FileKinds(image).of, args, selecting.kept(image, args, rows), LASTING)
    return Answer(Paths(), [image.path_string(row) for row in kept])


def answer_rdeps(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with the linked modules or all files that depend on files."""
    rows = rdeps(
        Dependencies(image),
        walking.targets(args),
        walking.rules(args),
        is_exact=not args.fed,
        all_files=args.all or bool(args.kinds),
        with_copies=args.with_copies,
    )
    return _shown(image, args, rows)


def answer_moddeps(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with the linked modules that files were made of."""
    names, rules = walking.targets(args), walking.rules(args)
    return _shown(image, args, moddeps(Dependencies(image), names, rules, is_exact=not args.fed))


def answer_revmoddeps(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with the linked modules that depend on linked modules."""
    names, rules = walking.targets(args), walking.rules(args)
    return _shown(image, args, revmoddeps(Dependencies(image), names, rules, is_exact=not args.fed))


# ---- why ----


DEPENDS, DEPENDS_NOT = 0, 1
#: a longer command is named by its program and what it works on
WIDTH = 80


def declare_why(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `cas why`."""
    parser.add_argument("target", metavar="TARGET", type=os.fsencode, help="what was made")
    parser.add_argument(
        "file", metavar="FILE", type=os.fsencode, help="the file that may have gone into it"
    )
    add_database(parser)
    add_format(parser, "text", "json")
    parser.add_argument("--full", action="store_true", help="print whole commands")
    walking.add_rules(parser)
    parser.epilog = (
        "A long command is named by its program and what it worked on: cc1 lvm.c.\n"
        "[PID:INDEX] after a command is its name for --pid: cas commands --pid PID:INDEX.\n"
        "Exit status: 0 when TARGET depends on FILE; 1 when it does not, or the build opened no "
        "such file; 2 on an error.\n"
    )
    add_examples(parser, "cas why src/lua src/lvm.h", "cas why src/lua src/lvm.h --full")


def run_why(args: argparse.Namespace) -> int:
    """Print the chain, or the reason why there is none."""
    from etrace.query.why import why

    image = open_found(args)
    found = why(Dependencies(image), args.target, args.file, walking.rules(args))
    records = Records(image)
    if args.format == "json":
        print(json.dumps(_record(image, records, found), indent=2))
    else:
        for line in _lines(image, records, found, is_full=args.full):
            print(printable(line))
        if found.n_readers > 1:
            sys.stdout.flush()  # the remark comes after the chain, also in a pipe
            say(
                f"cas: the shortest of several chains; {found.n_readers} commands read the file: "
                f"cas commands --path {one_line(shlex.quote(os.fsdecode(args.file)))}\n"
            )
    return DEPENDS if found.depends else DEPENDS_NOT


def _path(image: Image, row: int) -> str:
    return os.fsdecode(image.path_string(row))


def _listed(title: str, paths: Sequence[bytes]) -> Iterator[str]:
    if paths:
        yield f"  {title}"
    yield from (f"    {os.fsdecode(path)}" for path in paths)


def _lines(image: Image, records: Records, found: Why, *, is_full: bool) -> Iterator[str]:
    from etrace.query.rows.labels import Labels

    labels = Labels(image)

    def command(execution: int) -> str:
        pid, index = records.key(execution)
        words = shlex.join(records.argv(execution))
        if len(words) > WIDTH and not is_full:
            words = labels.of(execution)
        return f"{words}  [{pid}:{index}]"

    target, file = _path(image, found.target), _path(image, found.file)
    if not found.depends:
        yield f"{target} does not depend on {file}"
        yield from (f"  {reason}" for reason in found.reasons)
        yield from _listed("made from it:", found.made)
        yield from _listed("similar files that it depends on:", found.similar)
        return
    yield target
    for link in found.links:
        yield f"  {link.how} by  {command(link.execution)}"
        if link.reader != link.execution:
            yield f"  in one process with  {command(link.reader)}"
        if link.is_forked:
            yield "  which was forked with its parent's memory"
        elif link.read is None:
            yield "  which read a pipe"
        else:
            yield f"  which read  {_path(image, link.read)}"


def _record(image: Image, records: Records, found: Why) -> dict[str, Any]:
    links = [
        {
            "how": link.how.value,
            "command": records.command(link.execution),
            "reader": records.command(link.reader),
            "read": None if link.read is None else _path(image, link.read),
            "is_forked": link.is_forked,
        }
        for link in found.links
    ]
    return {
        "target": _path(image, found.target),
        "file": _path(image, found.file),
        "depends": found.depends,
        "chain": links,
        "reasons": list(found.reasons),
        "made": [os.fsdecode(path) for path in found.made],
        "similar": [os.fsdecode(path) for path in found.similar],
    }
