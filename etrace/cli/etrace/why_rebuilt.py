# SPDX-License-Identifier: Apache-2.0
"""`etrace why-rebuilt A B`: what made a build make files again."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from etrace.cli.ending import printable, say
from etrace.cli.opening import prepared
from etrace.cli.options.common import add_examples, add_format, add_quiet, add_two_builds
from etrace.cli.show.output import put
from etrace.figures import count
from etrace.nfsdb.files import locate
from etrace.query.changes.matching import ROOT
from etrace.query.changes.rebuilt import Cache, Cause, Output, Reason, Rebuilt, by_cause
from etrace.query.rows.records import Records

EPILOG = """\
Contents are compared by hash when both builds were traced with --hash (or parsed with it), else by
their size when the traces were parsed: run cas parse after a build then.
Variables are compared if both builds were traced with --env.

exit status: 0 something was made again; 1 nothing was, or a FILE was not made; 2 wrong usage,
damaged input or failure.
"""
MEANINGS = {
    Cause.INPUT: "an input has another content",
    Cause.MADE_INPUT: "an input that the build made has another content",
    Cause.TOOL: "another tool, or its program or libraries have another content",
    Cause.FLAG: "another word on the command line",
    Cause.ENVIRONMENT: "another variable",
    Cause.INPUTS: "an input more or less",
    Cause.ORDER: "the same words in another order",
    Cause.NEW: "the first build did not make it",
    Cause.NEEDLESS: "made needlessly",
}
BY_SIZE = ", as far as sizes show"
SIZES = frozenset((Cause.INPUT, Cause.MADE_INPUT, Cause.TOOL))
N_SHOWN = 20
INDENT = "  "


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace why-rebuilt`."""
    parser.epilog = EPILOG
    add_two_builds(parser)
    parser.add_argument(
        "files", metavar="FILE", type=os.fsencode, nargs="*", default=[],
        help="only these files that B made (default: all)",
    )  # fmt: skip
    add_format(parser, "text", "json")
    add_quiet(parser)
    add_examples(
        parser,
        "etrace why-rebuilt ../yesterday .",
        "etrace why-rebuilt ../yesterday . out/app --json",
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace why-rebuilt`: 0 when something was made again."""
    _warn(args.a)
    before, after = (prepared(place, is_quiet=args.quiet) for place in (args.a, args.b))
    found = Rebuilt(before, after)
    outputs = found.outputs(args.files)
    if args.format == "json":
        put(json.dumps(_record(found, outputs), indent=1) + "\n")
    else:
        put("".join(f"{printable(line)}\n" for line in _lines(found, outputs)))
    return 0 if outputs else 1


def _warn(place: Path) -> None:
    """Say that sizes may be wrong if a trace was not parsed when its build ended."""
    files = locate(place)
    if place.is_dir() and not files.has_database:
        say(
            f"etrace: {place} was not parsed before: sizes are those of now\n"
            "  hint: run cas parse after a build, before files change\n"
        )


# ---- text ----


def _lines(found: Rebuilt, outputs: Sequence[Output]) -> Iterator[str]:
    if not outputs:
        yield "nothing was made again"
        return
    groups = by_cause(outputs)
    meanings = dict(MEANINGS)
    if not found.are_hashed:
        meanings[Cause.NEEDLESS] += BY_SIZE
    yield f"{'files':>7}  cause"
    for cause, own in groups.items():
        yield f"{len(own):>7,}  {cause:<11}  {meanings[cause]}"
    yield from _caches(outputs)
    for cause, own in groups.items():
        yield ""
        yield f"{cause}: {meanings[cause]}"
        shown = own[:N_SHOWN]
        width = max(len(_name(found.shown(each.path))) for each in shown)
        for each in shown:
            yield f"{INDENT}{_name(found.shown(each.path)):<{width}}  {_detail(found, each)}"
        if len(own) > N_SHOWN:
            yield f"{INDENT}and {len(own) - N_SHOWN:,} more (--json lists all)"


def _caches(outputs: Sequence[Output]) -> Iterator[str]:
    n = {kind: sum(each.cache == kind for each in outputs) for kind in Cache}
    if n[Cache.HIT] or n[Cache.MISS]:
        hits = count(n[Cache.HIT], "file")
        yield f"compiler cache: {hits} from the cache, {n[Cache.MISS]:,} compiled"
    if n[Cache.UNSEEN]:
        files = count(n[Cache.UNSEEN], "file")
        yield f"sccache: {files}; its server compiles, so hits and misses are not seen"


def _detail(found: Rebuilt, output: Output) -> str:
    reason = output.reason
    parts = [_difference(reason), f"in {found.label(reason.execution)}"]
    if reason.via:
        parts.append("through " + ", ".join(_name(found.shown(path)) for path in reason.via))
    if output.cache is not None:
        parts.append(f"cache {output.cache}")
    return "  ".join(filter(None, parts))


def _difference(reason: Reason) -> str:
    before, after = (
        None if each is None else os.fsdecode(each) for each in (reason.before, reason.after)
    )
    what = _name(reason.what)
    if not what:
        return ""
    if reason.cause in SIZES and before is not None and before.isdigit():
        return f"{what} {int(before):,} -> {int(after or 0):,} bytes"
    name = f"{what}: " if reason.cause == Cause.ENVIRONMENT else ""
    if before is None:
        return f"{name}+ {_name(reason.after or b'')}"
    if after is None:
        return f"{name}- {_name(reason.before or b'')}"
    return f"{name}{_name(reason.before or b'')} -> {_name(reason.after or b'')}"


def _name(name: bytes) -> str:
    """Return a normal name relative to the source root."""
    return os.fsdecode(name.replace(ROOT + b"/", b""))


# ---- JSON ----


def _record(found: Rebuilt, outputs: Sequence[Output]) -> dict[str, Any]:
    records = Records(found.b.image)
    return {
        "causes": {cause: len(own) for cause, own in by_cause(outputs).items()},
        "files": [_output(records, each) for each in outputs],
    }


def _output(records: Records, output: Output) -> dict[str, Any]:
    reason = output.reason
    return {
        "path": records.path(output.path),
        "cause": reason.cause.value,
        "what": os.fsdecode(reason.what) or None,
        "before": None if reason.before is None else os.fsdecode(reason.before),
        "after": None if reason.after is None else os.fsdecode(reason.after),
        "via": [records.path(path) for path in reason.via],
        "cache": None if output.cache is None else output.cache.value,
        "made_by": _command(records, output.execution),
        "differs_in": _command(records, reason.execution),
    }


def _command(records: Records, row: int) -> dict[str, Any]:
    upid, index = records.key(row)
    return {"pid": upid, "idx": index, "cwd": records.directory(row), "command": records.argv(row)}
