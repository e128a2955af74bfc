# SPDX-License-Identifier: Apache-2.0
"""`etrace xray extract`: the instrumentation map of a program."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from etrace.cli.xray import options
from etrace.errors import UsageError
from etrace.xray.convert.records import yaml_string
from etrace.xray.instrumentation import InstrumentationMap, Sled
from etrace.xray.names import MAX_OBJECT


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("binary", metavar="BINARY", help="executable or shared object")
    options.add_output(parser)
    parser.add_argument(
        "--format", choices=("yaml", "text", "csv", "json"), default="yaml",
        help="yaml: as llvm-xray prints it (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--no-demangle", action="store_true", help="mangled names")
    parser.add_argument("--object", type=int, default=0, metavar="N", help="number of a DSO")


def _object(found: InstrumentationMap, sled: Sled, demangled: bool) -> dict[str, Any]:
    number = sled.function_id | found.object_number << 24
    declaration = found.declaration(number)
    return {
        "id": number, "address": sled.address, "function": sled.function, "kind": sled.kind_name,
        "always_instrument": sled.always_instrument, "version": sled.version,
        "name": found.name(number, demangled=demangled),
        "place": str(declaration) if declaration else "",
    }  # fmt: skip


def _yaml(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "---\n"
    for row in rows:
        yield (
            f"- {{ id: {row['id']}, address: 0x{row['address']:X}, "
            f"function: 0x{row['function']:X}, kind: {row['kind']}, "
            f"always-instrument: {str(row['always_instrument']).lower()}, "
            f"function-name: {yaml_string(row['name'])}, version: {row['version']} }}\n"
        )
    yield "...\n"


def _text(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        place = f"  {row['place']}" if row["place"] else ""
        yield f"{row['id']:>6}  0x{row['address']:x}  {row['kind']:<14}  {row['name']}{place}\n"


def _csv(rows: list[dict[str, Any]]) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield text.getvalue()


def _json(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield json.dumps(rows, indent=1) + "\n"


WRITERS = {"yaml": _yaml, "text": _text, "csv": _csv, "json": _json}


def run(args: argparse.Namespace) -> int:
    """Print the map."""
    if not 0 <= args.object <= MAX_OBJECT:
        raise UsageError(f"--object {args.object}: no shared object", f"0 to {MAX_OBJECT}")
    found = InstrumentationMap.from_elf(args.binary, args.object)
    rows = [_object(found, sled, not args.no_demangle) for sled in found.sleds]
    with options.open_output(args) as stream:
        for text in WRITERS[args.format](rows):
            stream.write(text.encode(errors="replace"))
    return 0
