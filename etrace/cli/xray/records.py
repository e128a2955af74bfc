# SPDX-License-Identifier: Apache-2.0
"""`etrace xray convert` and `dump`: the records of a log."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, Any, cast

from libetrace.xray import grammar
from libetrace.xray.decoder import LogError

from etrace.cli.ending import say
from etrace.cli.options.common import add_examples
from etrace.cli.xray import options
from etrace.errors import EtraceError
from etrace.xray import convert
from etrace.xray.clock import LAST_TSC
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Session
from etrace.xray.source import describe, open_log

# ---- convert ----


def declare_convert(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument(
        "--format",
        dest="to",
        choices=tuple(convert.FORMATS),
        default="yaml",
        help="format of the output (default: %(default)s)",
    )
    parser.add_argument(
        "--no-sort", action="store_true", help="sort records by thread, not by time"
    )
    parser.add_argument(
        "--by",
        choices=("self", "count"),
        default="self",
        help="weight of folded stacks (default: self)",
    )
    parser.add_argument(
        "--deduce", action="store_true", help="in folded stacks, also count calls without an exit"
    )
    add_examples(
        parser,
        "etrace xray convert --format perfetto -m tool xray-log.tool.1 -o tool.json",
        "etrace xray convert --format yaml xray-log.tool.1",
    )


def run_convert(args: argparse.Namespace) -> int:
    """Write the other format; a name that ends in .gz is compressed."""
    session = options.make_session(args)
    with options.open_output(args) as stream:
        wanted = convert.Options(
            args.to, not args.no_sort, args.by, args.deduce, partial(args.watch.report, "convert")
        )
        if args.output and args.output.endswith(".gz"):
            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
                convert.write(session, cast(IO[bytes], packed), wanted)
        else:
            convert.write(session, stream, wanted)
    seen = session.native(percentiles=False)
    return options.finish(session, session.damages(), seen.functions, seen.kinds)


# ---- dump ----

ACTIONS = ("enter", "exit", "tail-exit", "enter-arg")
ABSOLUTE = ("NewCPUId", "TSCWrap")
EVENTS = ("CustomEvent", "TypedEvent")
#: version from which on events have a difference in time
DELTAS_SINCE = 5

#: of libetrace.xray.grammar.records
Record = tuple[int, str, int | None, int, int, int, int, int, int]


def declare_dump(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="Flight Data Recorder log; - for standard input"
    )
    options.add_maps(parser)
    options.add_hz(parser)
    options.add_filters(parser, of_calls=False)
    options.add_output(parser)
    parser.add_argument("--verify", action="store_true", help="also check the order of records")
    add_examples(
        parser, "etrace xray dump xray-log.tool.1", "etrace xray dump --verify xray-log.tool.1"
    )


def _signed(value: int) -> int:
    return value - 2**64 if value >> 63 else value


def _line(record: Record, names: Names) -> str:
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


def _times(records: Iterable[Record], has_deltas: bool) -> Iterator[tuple[Record, int, int]]:
    """Yield each record with its thread and its time (of the one before when it has none)."""
    times: dict[int, int] = {}
    thread, block = 0, -1
    for record in records:
        _, name, action, _, number, ticks, _, _, record_block = record
        if record_block != block:
            thread, block = 0, record_block
        if name == "NewBuffer":
            thread = number
        own = times.get(thread, 0)
        if name in ABSOLUTE:
            own = times[thread] = ticks
        elif action is not None or (name in EVENTS and has_deltas):
            own = times[thread] = own + _signed(ticks)
        elif name in EVENTS:
            own = ticks
        yield record, thread, own


def _selected(records: Iterable[Record], session: Session) -> Iterator[Record]:
    """Yield the records that the filters leave: of functions and of a time, these and no others."""
    chosen = session.options
    threads, functions = chosen["threads"], chosen["functions"]
    first, last = chosen["from_tsc"], chosen["until_tsc"]
    is_whole = functions is None and (first, last) == (0, LAST_TSC)
    extents: Record | None = None
    is_shown = False  # of the function before, for its arguments
    for record, thread, tsc in _times(records, session.logs[0].version >= DELTAS_SINCE):
        if record[1] == "BufferExtents":  # the next record says of which thread
            extents = record
            continue
        if threads is not None and thread not in threads:
            continue
        if record[1] != "CallArgument":
            is_function = record[2] is not None and (functions is None or record[3] in functions)
            is_event = record[1] in EVENTS and functions is None
            is_shown = is_whole or ((is_function or is_event) and first <= tsc < last)
        if is_whole and extents is not None:
            yield extents
        extents = None
        if is_shown:
            yield record


def _dump(data: Any, path: str, session: Session) -> Iterator[str]:
    try:
        records: Iterable[Record] = grammar.records(data)
        if session.selection.is_narrow:
            records = _selected(records, session)
        yield from (_line(record, session.names) for record in records)
    except LogError as error:
        raise EtraceError(f"{path}: {error}", "is it an XRay log? name the file") from error


def run_dump(args: argparse.Namespace) -> int:
    """Print the records; status 2 reports damage, with --verify of a log that is not valid."""
    names = Names(read_maps(args.maps), not args.no_demangle)
    selection = options.make_selection(args)
    status = 0
    args.watch.stop()  # lines come at once, warnings between them
    with options.open_output(args) as stream:
        for path in args.logs:
            data = open_log(path)
            session = Session([path], names, selection, args.hz, [data])
            for text in _dump(data, path, session):
                stream.write(text.encode(errors="replace"))
            damage = session.logs[0].damage
            for warning in describe(damage, path):
                say(f"etrace xray: warning: {warning}\n")
                status = options.LOSSY if damage.is_lossy else status
            for offset, text in grammar.verify(data) if args.verify else ():
                say(f"etrace xray: {path}: offset {offset}: {text}\n")
                status = options.LOSSY
    return status
