# SPDX-License-Identifier: Apache-2.0
"""`cas diff A B`: what changed between two builds. Exit status as diff(1)."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from libetrace.image.file import Image

from etrace.cli.ending import printable
from etrace.cli.options.common import add_examples, add_format
from etrace.nfsdb.store import open_database
from etrace.query.changes.diff import Changed, Delta, Difference, diff
from etrace.query.rows.records import Records

SAME, DIFFERENT = 0, 1


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `cas diff`."""
    for name, text in (("a", "the build before"), ("b", "the build after")):
        parser.add_argument(
            name, metavar=name.upper(), type=Path,
            help=f"{text}: directory of a database, image or .nfsdb.json",
        )  # fmt: skip
    add_format(parser, "text", "json")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print nothing; only set the exit status"
    )
    parser.epilog = "Exit status: 0 when nothing changed, 1 when something did, 2 on an error."
    add_examples(parser, "cas diff ../yesterday .", "cas diff before after --json")


def run(args: argparse.Namespace) -> int:
    """Print the differences."""
    before, after = open_database(args.a), open_database(args.b)
    found = diff(before, after)
    if args.format == "json":
        print(json.dumps(_record(before, after, found), indent=2))
    elif not args.quiet:
        for line in _lines(before, after, found):
            print(printable(line))
    return DIFFERENT if found else SAME


def _command(image: Image, row: int) -> str:
    return shlex.join(Records(image).argv(row))


def _lines(before: Image, after: Image, found: Difference) -> Iterator[str]:
    for each in found.changed:
        yield f"~ {_command(after, each.after)}"
        yield from _changes(each)
    yield from (f"- {_command(before, row)}" for row in found.removed)
    yield from (f"+ {_command(after, row)}" for row in found.added)
    yield from _section("files read:", _signs(found.inputs))
    yield from _section("files written:", _signs(found.outputs))
    sizes = (f"~ {_text(p)}: {a} -> {b} bytes" for p, (a, b) in found.resized.items())
    yield from _section("sizes of files read:", sizes)
    yield from _section("environment:", _variables(found))


def _changes(each: Changed) -> Iterator[str]:
    for name, pair in (("program", each.program), ("directory", each.cwd)):
        if pair is not None:
            yield f"    {name}: {' -> '.join(map(_text, pair))}"
    if each.status is not None:
        yield f"    status: {' -> '.join(map(_status, each.status))}"
    for name, delta in (("argument", each.arguments), ("read", each.inputs)):
        yield from (f"    {sign[0]} {name} {sign[2:]}" for sign in _signs(delta))


def _status(status: int | None) -> str:
    return "unknown" if status is None else str(status)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if not number:
            yield title
        yield f"  {line}"


def _text(raw: bytes) -> str:
    return os.fsdecode(raw)


def _signs(delta: Delta) -> Iterator[str]:
    yield from (f"- {_text(name)}" for name in delta.removed)
    yield from (f"+ {_text(name)}" for name in delta.added)


def _variables(found: Difference) -> Iterator[str]:
    for name, (before, after) in found.environment.items():
        yield from (f"- {_text(name)}={_text(value)}" for value in before if value not in after)
        yield from (f"+ {_text(name)}={_text(value)}" for value in after if value not in before)


def _record(before: Image, after: Image, found: Difference) -> Mapping[str, Any]:
    return {
        "changed": [_changed_record(before, after, each) for each in found.changed],
        "removed": [Records(before).command(row) for row in found.removed],
        "added": [Records(after).command(row) for row in found.added],
        "files_read": _delta_record(found.inputs),
        "files_written": _delta_record(found.outputs),
        "sizes": {_text(path): list(pair) for path, pair in found.resized.items()},
        "environment": {
            _text(name): [list(map(_text, values)) for values in pair]
            for name, pair in found.environment.items()
        },
    }


def _changed_record(before: Image, after: Image, each: Changed) -> Mapping[str, Any]:
    return {
        "before": Records(before).command(each.before),
        "after": Records(after).command(each.after),
        "arguments": _delta_record(each.arguments),
        "files_read": _delta_record(each.inputs),
        "program": each.program and list(map(_text, each.program)),
        "directory": each.cwd and list(map(_text, each.cwd)),
        "status": each.status and list(each.status),
    }


def _delta_record(delta: Delta) -> Mapping[str, list[str]]:
    return {"removed": list(map(_text, delta.removed)), "added": list(map(_text, delta.added))}
