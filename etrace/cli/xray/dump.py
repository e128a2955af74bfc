# SPDX-License-Identifier: Apache-2.0
"""`etrace xray dump`: every record as it stands in the log."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from libetrace.xray import verifier
from libetrace.xray.reader import LogError

from etrace.cli.ending import tell
from etrace.cli.xray import options
from etrace.errors import EtraceError
from etrace.xray.log import read_bytes
from etrace.xray.names import Names, read_maps
from etrace.xray.source import open_log
from etrace.xray.warnings import describe

ACTIONS = ("enter", "exit", "tail-exit", "enter-arg")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="Flight Data Recorder log; -")
    options.add_maps(parser)
    options.add_output(parser)
    parser.add_argument("--verify", action="store_true", help="also check the grammar")


def _signed(value: int) -> int:
    return value - 2**64 if value >> 63 else value


def _line(record: tuple[Any, ...], names: Names) -> str:
    offset, name, action, function, number, tsc, small, n_bytes, _ = record
    details = {
        "NewBuffer": f"thread {number}",
        "Pid": f"process {number}",
        "NewCPUId": f"cpu {small} tsc {tsc}",
        "TSCWrap": f"tsc {tsc}",
        "WallTime": f"{_signed(tsc)}.{max(number, 0):06d} s",
        "CallArgument": f"{tsc} (0x{tsc:x})",
        "BufferExtents": f"{tsc} bytes",
        "CustomEvent": f"{n_bytes} bytes, {_signed(tsc)} ticks",
        "TypedEvent": f"type {small}, {n_bytes} bytes, {_signed(tsc)} ticks",
    }.get(name, "")
    if action is not None:
        details = f"{ACTIONS[action]} {names.name(function)} +{tsc}"
    return f"{offset:>10}  {name:<13}  {details}".rstrip() + "\n"


def _dump(data: Any, path: str, names: Names) -> Iterator[str]:
    try:
        yield from (_line(record, names) for record in verifier.records(data))
    except LogError as error:
        raise EtraceError(f"{path}: {error}", "is it an XRay log? name the file") from error


def run(args: argparse.Namespace) -> int:
    """Print the records; status 2 tells of damage, with --verify of a log that is not valid."""
    names = Names(read_maps(args.maps), not args.no_demangle)
    status = 0
    with options.open_output(args.output) as stream:
        for path in args.logs:
            data = open_log(path)
            for text in _dump(data, path, names):
                stream.write(text.encode(errors="replace"))
            damage = read_bytes(data, path).damage
            for warning in describe(damage, path):
                tell(f"etrace xray: warning: {warning}\n")
                status = options.LOSSY if damage.is_lossy else status
            for offset, text in verifier.verify(data) if args.verify else ():
                tell(f"etrace xray: {path}: offset {offset}: {text}\n")
                status = options.LOSSY
    return status
