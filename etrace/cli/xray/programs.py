# SPDX-License-Identifier: Apache-2.0
"""`etrace xray extract` and `join`: the program and the execution that wrote a log."""

from __future__ import annotations

import argparse
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from libetrace.image.file import Image

from etrace.cli.opening import open_found
from etrace.cli.options.common import add_database, add_examples, add_format
from etrace.cli.xray import options
from etrace.errors import UsageError
from etrace.texts import CsvWriter
from etrace.xray.convert.chrome import events
from etrace.xray.convert.records import yaml_string
from etrace.xray.join import Join, join, offset_ns, timeline
from etrace.xray.names import MAX_OBJECT, InstrumentationMap, Sled
from etrace.xray.session import Session

# ---- extract ----


def declare_extract(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("binary", metavar="BINARY", help="executable or shared object")
    options.add_output(parser)
    add_format(
        parser,
        "yaml",
        "text",
        "csv",
        "json",
        text="format of the output; yaml is as llvm-xray prints it",
    )
    parser.add_argument("--no-demangle", action="store_true", help="show mangled names")
    parser.add_argument(
        "--object",
        type=int,
        default=0,
        metavar="N",
        help="number of the shared object in function ids (default: 0, the program)",
    )
    add_examples(
        parser, "etrace xray extract tool", "etrace xray extract --format csv tool -o map.csv"
    )


def _extract_object(found: InstrumentationMap, sled: Sled, demangled: bool) -> dict[str, Any]:
    number = sled.function_id | found.object_number << 24
    declaration = found.declaration(number)
    return {
        "id": number, "address": sled.address, "function": sled.function, "kind": sled.kind_name,
        "always_instrument": sled.always_instrument, "version": sled.version,
        "name": found.name(number, demangled=demangled),
        "place": str(declaration) if declaration else "",
    }  # fmt: skip


def _extract_yaml(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "---\n"
    for row in rows:
        yield (
            f"- {{ id: {row['id']}, address: 0x{row['address']:X}, "
            f"function: 0x{row['function']:X}, kind: {row['kind']}, "
            f"always-instrument: {str(row['always_instrument']).lower()}, "
            f"function-name: {yaml_string(row['name'])}, version: {row['version']} }}\n"
        )
    yield "...\n"


def _extract_text(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        place = f"  {row['place']}" if row["place"] else ""
        yield f"{row['id']:>6}  0x{row['address']:x}  {row['kind']:<14}  {row['name']}{place}\n"


def _extract_csv(rows: list[dict[str, Any]]) -> Iterator[str]:
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.write(rows[0] if rows else ["id"])
    for row in rows:
        writer.write(row.values())
    yield text.getvalue()


def _extract_json(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield json.dumps(rows, indent=1) + "\n"


WRITERS = {"yaml": _extract_yaml, "text": _extract_text, "csv": _extract_csv, "json": _extract_json}


def run_extract(args: argparse.Namespace) -> int:
    """Print the map."""
    if not 0 <= args.object <= MAX_OBJECT:
        raise UsageError(f"--object {args.object}: no shared object", f"0 to {MAX_OBJECT}")
    found = InstrumentationMap.from_elf(args.binary, args.object)
    rows = [_extract_object(found, sled, not args.no_demangle) for sled in found.sleds]
    with options.open_output(args) as stream:
        for text in WRITERS[args.format](rows):
            stream.write(text.encode(errors="replace"))
    return 0


# ---- join ----


def declare_join(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    add_database(parser)
    add_format(
        parser,
        "text",
        "json",
        "chrome",
        text="format of the output; chrome is a timeline of executions with their calls",
    )
    add_examples(
        parser,
        "etrace xray join xray-log.tool.1",
        "etrace xray join --db ~/project xray-log.tool.1 --json",
    )


def _join_text(found: Join) -> str:
    if found.execution is None or found.evidence is None:
        return f"{found.log}: not joined: {found.reason}\n"
    one = found.execution
    return (
        f"{found.log}: process {one.pid}, execution {one.index}: {one.binary}\n"
        f"  {shlex.join(one.arguments)}\n  {found.evidence.value}\n"
    )


def _join_object(found: Join) -> dict[str, Any]:
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


def run_join(args: argparse.Namespace) -> int:
    """Print the execution of each log; status 1 when one of them has none."""
    session = options.make_session(args)
    image = open_found(args)
    all_found = [join(image, log) for log in session.logs]
    if args.format == "text":
        text = "".join(map(_join_text, all_found))
    elif args.format == "json":
        text = json.dumps([_join_object(found) for found in all_found], indent=1) + "\n"
    else:
        text = json.dumps({"traceEvents": list(_timeline(image, session, all_found))}) + "\n"
    with options.open_output(args) as stream:
        stream.write(text.encode(errors="replace"))
    status = options.finish(session, session.damages(), (), ())
    return status if all(found.execution for found in all_found) else max(status, 1)
