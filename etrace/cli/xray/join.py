# SPDX-License-Identifier: Apache-2.0
"""`etrace xray join`: which execution of a build wrote a log."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from libetrace.image.file import Image

from etrace.cli.xray import options
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.xray.convert.chrome import events
from etrace.xray.join import Join, join, offset_ns, timeline
from etrace.xray.session import Session


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument(
        "--nfsdb",
        type=Path,
        metavar="DB",
        help="database of the build, or its directory (default: .)",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "chrome"), default="text",
        help="chrome: executions and their calls on one timeline (default: %(default)s)",
    )  # fmt: skip


def _text(found: Join) -> str:
    if found.execution is None or found.evidence is None:
        return f"{found.log}: not joined: {found.reason}\n"
    one = found.execution
    return (
        f"{found.log}: process {one.pid}, execution {one.index}: {one.binary}\n"
        f"  {shlex.join(one.arguments)}\n  {found.evidence.value}\n"
    )


def _object(found: Join) -> dict[str, Any]:
    out = asdict(found)
    out["evidence"] = found.evidence.value if found.evidence else None
    return out


def _moved(event: dict[str, Any], by_ns: int) -> dict[str, Any]:
    return event | {"ts": event["ts"] + by_ns / 1000} if "ts" in event else event


def _timeline(image: Image, session: Session, all_found: list[Join]) -> Iterator[dict[str, Any]]:
    for log, found in zip(session.logs, all_found, strict=True):
        move = offset_ns(image, log)
        if found.execution is None or move is None:
            continue
        yield from timeline(found)
        one = Session([log.name], session.names, session.selection, session.hz, [log.data])
        for event in events(one):
            yield _moved(event, move)


def run(args: argparse.Namespace) -> int:
    """Print the execution of each log; status 1 when one of them has none."""
    session = options.make_session(args)
    try:
        image = open_database(args.nfsdb)
    except EtraceError as error:
        hint = error.hint.replace("--dbdir", "--nfsdb") if error.hint else error.hint
        raise EtraceError(error.message, hint) from error
    all_found = [join(image, log) for log in session.logs]
    if args.format == "text":
        text = "".join(map(_text, all_found))
    elif args.format == "json":
        text = json.dumps([_object(found) for found in all_found], indent=1) + "\n"
    else:
        text = json.dumps({"traceEvents": list(_timeline(image, session, all_found))}) + "\n"
    with options.open_output(args) as stream:
        stream.write(text.encode(errors="replace"))
    status = options.finish(session, session.damages(), (), ())
    return status if all(found.execution for found in all_found) else max(status, 1)
