# SPDX-License-Identifier: Apache-2.0
"""Options of every command that walks over dependencies."""

from __future__ import annotations

import argparse
import os

from libetrace.depend.configuration import Rules

from etrace.cli.options.common import add_paths
from etrace.errors import UsageError

TARGET_HELP = "see docs/dependencies.md; [file=PATH,direct=true,...] has options of its own"


def add_rules(parser: argparse.ArgumentParser, *, direct: bool = True) -> None:
    """Add the options that make Rules."""
    group = parser.add_argument_group("what counts as a dependency")
    if direct:
        group.add_argument(
            "--direct", action="store_true",
            help="list other linked modules, but not their dependencies",
        )  # fmt: skip
    group.add_argument(
        "--ordered", action=argparse.BooleanOptionalAction, default=True,
        help="ignore files that were written after they were read (default)",
    )  # fmt: skip
    group.add_argument(
        "-P", "--pipes", action=argparse.BooleanOptionalAction,
        default=None, help="follow data through pipes (default, unless .bas_config disables it)",
    )  # fmt: skip
    group.add_argument(
        "-w",
        "--wrap-deps",
        dest="wrapped",
        action="store_true",
        help="treat a shell and all that it started as one command",
    )
    group.add_argument(
        "--programs", action="store_true",
        help="count every program that ran as an input, not only those that the build made",
    )  # fmt: skip
    _add_patterns(group)


def add_copies(parser: argparse.ArgumentParser) -> None:
    """Add `--with-copies`."""
    parser.add_argument(
        "--with-copies", action="store_true",
        help="also installed, stripped, renamed and hard-linked copies of linked modules",
    )  # fmt: skip


def _add_patterns(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--exclude-file", dest="exclude_files", metavar="GLOB", action="append",
        type=os.fsencode, default=[], help="list these files, but not their dependencies",
    )  # fmt: skip
    group.add_argument(
        "--exclude-cmd", dest="exclude_commands", metavar="GLOB",
        action="append", type=os.fsencode, default=[],
        help="ignore the inputs of these commands (arguments joined by single spaces)",
    )  # fmt: skip
    group.add_argument(
        "--negate-pattern",
        dest="negate",
        action="store_true",
        help="invert the two options above: exclude what does not match",
    )


def rules(args: argparse.Namespace) -> Rules:
    """Return the rules of a command line."""
    return Rules(
        is_direct=getattr(args, "direct", False),
        is_ordered=args.ordered,
        pipes=args.pipes,
        is_wrapped=args.wrapped,
        all_programs=args.programs,
        exclude_files=tuple(args.exclude_files),
        exclude_commands=tuple(args.exclude_commands),
        negate=args.negate,
    )


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Add FILE... and `--path`."""
    add_paths(parser, positional=True)
    parser.epilog = f"FILE: {TARGET_HELP}."


def targets(args: argparse.Namespace) -> list[bytes]:
    """Return the files that a command is about; UsageError without any."""
    if not args.path and not args.fed:
        module = getattr(args, "next_module", "")  # `cas deps b`, where b is a file as well
        hint = f"{module} is a query; for a file of that name write ./{module}"
        usual = "name a file: a path, the end of a path, or a glob"
        raise UsageError("no FILE", hint if module else usual)
    return args.path or []
