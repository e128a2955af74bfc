# SPDX-License-Identifier: Apache-2.0
"""Options of `cas export sbom`, and what it reports."""

from __future__ import annotations

import argparse
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.ending import one_line, say
from etrace.cli.options.common import size
from etrace.errors import UsageError
from etrace.figures import count

if TYPE_CHECKING:
    from etrace.export.sbom.bill import Bill
    from etrace.export.sbom.comparison import Comparison
    from etrace.export.sbom.parts import Party, Request

FORMATS = ("spdx3", "spdx2.3", "cyclonedx", "in-toto")
#: attributes of the options
NAMES = (
    "document_format", "name", "product_version", "supplier", "creator", "licence", "copyright",
    "cpe", "namespace", "environment", "no_parameters", "no_steps", "with_tools", "max_hashed",
    "compare",
)  # fmt: skip
_CPE = re.compile(r"cpe:2\.3:[aho*-](?::(?:[^:\\\s]|\\.)+){10}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s#]+")
HINT = "  hint: cas export sbom --with-tools also lists tools\n"


def add_all(parser: argparse._ArgumentGroup) -> None:
    """Add the options."""
    add = parser.add_argument
    add("--format", dest="document_format", choices=FORMATS, help="the document (default: spdx3)")
    add("--name", metavar="NAME", help="name of the product (default: that of the module)")
    add("--product-version", metavar="V",
        help="its version (default: the git commit, else a digest)")  # fmt: skip
    add("--supplier", metavar="PARTY", help="who supplies it: 'NAME <ADDRESS or URL>'")
    add("--creator", metavar="PARTY", help="who makes the document, in the same form")
    add("--licence", metavar="SPDX", help="its licence (default: what its files name)")
    add("--copyright", metavar="TEXT", help="its copyright notice")
    add("--cpe", metavar="CPE", help="its CPE 2.3 name, by which vulnerabilities are found")
    add("--namespace", metavar="URI", help="beginning of all ids (default: made of the content)")
    add("--environment", metavar="GLOB", action="append", default=[],
        help="also variables of this name; secrets only by full name; may be repeated")  # fmt: skip
    add("--no-parameters", action="store_true", help="leave out command lines")
    add("--no-steps", action="store_true", help="list what went in, without the commands between")
    add("--with-tools", action="store_true", help="also files that only the tools needed")
    add("--max-hashed", metavar="SIZE", type=size,
        help="hash files up to SIZE, for example 64G (default: 16G)")  # fmt: skip
    add("--compare", metavar="FILE", type=Path,
        help="list the files that only this document, or only the build, names")  # fmt: skip


def request(args: argparse.Namespace) -> Request:
    """Return what the options say. UsageError."""
    from etrace.export.sbom.contents import MAX_BYTES
    from etrace.export.sbom.parts import Request
    from etrace.origin.licence import is_expression

    if args.licence and not is_expression(args.licence):
        raise UsageError(f"{args.licence}: no SPDX expression", "--licence 'MIT OR Apache-2.0'")
    if args.cpe and not _CPE.fullmatch(args.cpe):
        raise UsageError(
            f"{args.cpe}: no CPE 2.3 name", "cpe:2.3:a:VENDOR:PRODUCT:1.0:*:*:*:*:*:*:*"
        )
    if args.namespace and not _URI.fullmatch(args.namespace):
        raise UsageError(
            f"{args.namespace}: no absolute URI without #", "--namespace https://example.org/sbom/1"
        )
    return Request(
        created=created(), name=args.name or "", version=args.product_version or "",
        licence=args.licence or "",
        copyright=args.copyright or "", cpe=args.cpe or "", namespace=args.namespace or "",
        supplier=_party(args.supplier), creator=_party(args.creator),
        environment=tuple(args.environment), with_parameters=not args.no_parameters,
        with_steps=not args.no_steps, with_tools=args.with_tools,
        with_sha1=args.document_format == "spdx2.3", max_hashed=args.max_hashed or MAX_BYTES,
    )  # fmt: skip


def created() -> str:
    """Return the time of a document: SOURCE_DATE_EPOCH, else now. UsageError."""
    from etrace.export.sbom.parts import creation_time

    try:
        return creation_time(os.environ, time.time())
    except (ValueError, OverflowError, OSError) as error:
        said = os.environ.get("SOURCE_DATE_EPOCH", "")
        raise UsageError(f"SOURCE_DATE_EPOCH={said}: {error}", "seconds since 1970") from error


def _party(text: str | None) -> Party | None:
    from etrace.export.sbom.parts import read_party

    return read_party(text) if text else None


def report(bill: Bill) -> None:
    """Say what the document has, what it leaves out and what could not be known."""
    from etrace.export.sbom.contents import LARGE
    from etrace.nfsdb.environment import is_traced

    n_made = sum(file.is_made for file in bill.files.values())
    say(
        f"cas: {count(len(bill.products), 'module')}, {count(len(bill.files), 'file')} "
        f"({n_made} made by the build), {count(len(bill.steps), 'step')}, "
        f"{count(len(bill.packages), 'package')}\n"
    )
    if bill.hidden:
        listed = ", ".join(f"{n} {kind.value}" for kind, n in sorted(bill.hidden.items()))
        say(f"cas: read on the way, but no inputs: {listed}\n{HINT}")
    for reason, n_files in bill.unhashed():
        large = f"larger than {bill.request.max_hashed:,} bytes (--max-hashed)"
        why = large if reason == LARGE else reason
        say(f"cas: without a hash, {why}: {count(n_files, 'file')}\n")
    owned = [file for file in bill.files.values() if not file.is_made]
    n_unknown = sum(file.package is None and file.tree is None for file in owned)
    if n_unknown:
        say(f"cas: of no known package or git tree: {n_unknown} of {count(len(owned), 'file')}\n")
    if bill.request.environment and not is_traced(bill.image):
        say("cas: the trace has only environments of make and ninja: etrace run --env keeps all\n")
    for problem in bill.origins.problems:
        say(f"cas: {one_line(problem)}\n")


def lines_of(found: Comparison) -> list[str]:
    """Return the lines of a comparison."""
    lines = [f"- {name}" for name in found.other]
    lines += [f"+ {file.name}  [{file.kind.value}]" for file in found.own]
    lines += [f"~ {name}  [other content]" for name in found.different]
    return lines
