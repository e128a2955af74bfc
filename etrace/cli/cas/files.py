# SPDX-License-Identifier: Apache-2.0
"""`cas ref-files`, `faccess`, `procref` and `unused`: files that the build opened, or did not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options.common import add_examples, add_hash
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Facts, Opens, Paths
from etrace.query.files import faccess, procref, ref_files, unused
from etrace.query.rows.records import Records
from etrace.query.select.selection import opened_paths, selected_opens

# ---- ref-files ----


def declare_ref_files(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas ref-files`."""
    selecting.add_all(parser, files=True)
    add_hash(parser)
    add_examples(
        parser, "cas ref-files --relative", "cas ref-files --filter '[path=*.h,type=wc]' --count"
    )


def answer_ref_files(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths; with opens when more than the path of each is asked for."""
    given = selecting.selection_of(args)
    if args.details or args.fmt:
        return Answer(Opens(image), selected_opens(image, given))
    return Answer(Paths(are_opened=True), ref_files(image, given, original=args.original_path))


# ---- faccess ----


def declare_faccess(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas faccess`."""
    selecting.add_all(parser, files=True)
    add_examples(parser, "cas faccess src/lvm.o", "cas faccess src/lvm.o --json")


def _line(record: Mapping[str, Any]) -> str:
    return f"{record['pid']}:{record['idx']},{record['access']}"


def answer_faccess(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with an execution and its access for each file."""
    records = Records(image)
    found = []
    for access in faccess(image, selecting.selection_of(args)):
        pid, index = records.key(access.execution)
        found.append(
            {
                "pid": pid,
                "idx": index,
                "access": access.letters,
                "filename": records.path(access.path),
                "execution": f"{pid}:{index}",
            }
        )
    return Answer(Facts(_line, {"pid": "execution", "path": "filename"}), found)


# ---- procref ----


def declare_procref(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas procref`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--with-children", action="store_true", help="include the processes that they started"
    )
    add_hash(parser)
    add_examples(parser, "cas procref --pid 4194305", "cas info root-pid procref --with-children")


def answer_procref(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths; with opens when more than the path of each is asked for."""
    rows = procref(image, selecting.selection_of(args), with_children=args.with_children)
    if args.details or args.fmt:
        return Answer(Opens(image), rows)
    return Answer(Paths(are_opened=True), opened_paths(image, rows, original=args.original_path))


# ---- unused ----


def declare_unused(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `cas unused`."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, nargs="?", default=Path(),
        help="where to look (default: here)",
    )  # fmt: skip
    add_examples(parser, "cas unused src --relative", "cas unused --count")


def answer_unused(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths."""
    return Answer(Paths(), unused(image, args.directory))
