# SPDX-License-Identifier: Apache-2.0
"""`etrace attest`: digests over a trace, its image and documents, to be signed and checked."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from etrace.cli.ending import one_line, printable, say
from etrace.cli.opening import open_found
from etrace.cli.options.common import add_database, add_examples
from etrace.cli.options.sbom import created
from etrace.cli.show.output import opened
from etrace.errors import UsageError
from etrace.figures import count


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace attest`."""
    parser.add_argument(
        "action", choices=("write", "check"), help="write a statement, or check one"
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="*", type=Path,
        help="write: documents to vouch for as well; check: the statement",
    )  # fmt: skip
    add_database(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path,
        help="write to FILE (default: standard output); names in it are relative to it",
    )  # fmt: skip
    add_examples(
        parser, "etrace attest write sbom.spdx.json -o build.att.json",
        "etrace attest check build.att.json",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `etrace attest`: 0 when every file is that of the statement, else 1."""
    return _write(args) if args.action == "write" else _check(args)


def _write(args: argparse.Namespace) -> int:
    from etrace.export.attestation import files_of, statement

    image = open_found(args)
    folder = Path.cwd() if args.output is None else args.output.absolute().parent
    if args.output is not None and args.output.absolute() in {f.absolute() for f in args.files}:
        raise UsageError(f"{args.output} is both written and attested", "-o with another name")
    found = statement([*files_of(image), *args.files], folder, created())
    with opened(args.output, image.path) as stream:
        stream.write(json.dumps(found, indent=1).encode() + b"\n")
    say(f"etrace: {count(len(found['subject']), 'digest')}\n")
    return 0


def _check(args: argparse.Namespace) -> int:
    from etrace.export.attestation import check

    if len(args.files) != 1 or args.output is not None or args.database is not None:
        raise UsageError("etrace attest check takes a statement", "etrace attest check FILE")
    found = list(check(args.files[0]))
    for each in found:
        print(printable(f"{each.state:10} {one_line(each.name)}"))
    return int(any(each.state != "ok" for each in found))
