# SPDX-License-Identifier: Apache-2.0
"""`cas why TARGET FILE`: the chain of commands through which a file depends on another."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.ending import printable
from etrace.cli.options import walk as walking
from etrace.cli.options.common import add_database
from etrace.nfsdb.store import open_database
from etrace.query.classes.records import Records
from etrace.query.why import Why, why

DEPENDS, DEPENDS_NOT = 0, 1
#: characters of a command that are shown
WIDTH = 120

#: it reads an image that was not scanned: see program.run_pipeline
CHECKS_ROWS = True


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `cas why`."""
    parser.add_argument("target", metavar="TARGET", type=os.fsencode, help="what was made")
    parser.add_argument(
        "file", metavar="FILE", type=os.fsencode, help="the file that may have gone into it"
    )
    add_database(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--full", action="store_true", help="print whole commands")
    walking.add_rules(parser)
    parser.epilog = (
        "Exit status: 0 when TARGET depends on FILE, 1 when it does not, or on an error."
    )


def run(args: argparse.Namespace) -> int:
    """Print the chain, or the reason why there is none."""
    image = open_database(args.database)
    found = why(Dependencies(image), args.target, args.file, walking.rules(args))
    records = Records(image)
    if args.json:
        print(json.dumps(_record(image, records, found), indent=2))
    else:
        for line in _lines(image, records, found, 0 if args.full else WIDTH):
            print(printable(line))
    return DEPENDS if found.depends else DEPENDS_NOT


def _path(image: Image, row: int) -> str:
    return os.fsdecode(image.path_string(row))


def _listed(title: str, paths: Sequence[bytes]) -> Iterator[str]:
    if paths:
        yield f"  {title}"
    yield from (f"    {os.fsdecode(path)}" for path in paths)


def _command(records: Records, execution: int, width: int) -> str:
    """Return `command  [pid:index]`, the command cut to `width` characters (0: whole)."""
    pid, index = records.key(execution)
    command = shlex.join(records.argv(execution))
    if 0 < width < len(command):
        command = command[:width] + "..."
    return f"{command}  [{pid}:{index}]"


def _lines(image: Image, records: Records, found: Why, width: int) -> Iterator[str]:
    target, file = _path(image, found.target), _path(image, found.file)
    if not found.depends:
        yield f"{target} does not depend on {file}"
        yield from (f"  {reason}" for reason in found.reasons)
        yield from _listed("made from it:", found.made)
        yield from _listed("similar files that it depends on:", found.similar)
        return
    yield target
    for link in found.links:
        yield f"  {link.how} by  {_command(records, link.execution, width)}"
        if link.reader != link.execution:
            yield f"  in one process with  {_command(records, link.reader, width)}"
        yield (
            "  which read a pipe"
            if link.read is None
            else f"  which read  {_path(image, link.read)}"
        )


def _record(image: Image, records: Records, found: Why) -> dict[str, Any]:
    links = [
        {
            "how": link.how.value,
            "command": records.command(link.execution),
            "reader": records.command(link.reader),
            "read": None if link.read is None else _path(image, link.read),
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
