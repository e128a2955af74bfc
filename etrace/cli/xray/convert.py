# SPDX-License-Identifier: Apache-2.0
"""`etrace xray convert`: a log in the format of another tool."""

from __future__ import annotations

import argparse
import gzip
from functools import partial
from typing import IO, cast

from etrace.cli.xray import options
from etrace.xray import convert


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument(
        "--to", choices=tuple(convert.FORMATS), default="yaml", help="(default: %(default)s)"
    )
    parser.add_argument("--no-sort", action="store_true", help="sort by thread, not by time")
    parser.add_argument(
        "--by", choices=("self", "count"), default="self", help="value of folded stacks"
    )
    parser.add_argument(
        "-d", "--deduce", action="store_true", help="folded: count calls without an exit"
    )


def run(args: argparse.Namespace) -> int:
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
