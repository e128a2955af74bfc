# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any, NoReturn

#: argparse's message about unknown options
_UNKNOWN = r"unrecognized arguments: (--[\w-]+)"
MAX_DIGITS, NUMBER_MAX = 20, (1 << 63) - 1
#: bytes of a size's last letter
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _columns() -> int:
    """Return the width of the terminal as argparse would, without the slow `shutil`."""
    try:
        return int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        return 80


class Formatter(argparse.HelpFormatter):
    """Formats help; argparse makes one for every option that is declared."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class Parser(argparse.ArgumentParser):
    """A parser that suggests an option for an unknown one."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, **given})

    def error(self, message: str) -> NoReturn:
        """End with the usage and a message."""
        unknown = re.match(_UNKNOWN, message)
        if unknown:
            from etrace.alike import nearest

            known = [each for each in self._option_string_actions if each.startswith("--")]
            near = nearest(unknown[1], known)
            message += f"; did you mean {' or '.join(near)}?" if near else ""
        super().error(message)


def whole(text: str) -> int:
    """Read a number that fits in 64 bits; Python's own take no end."""
    if len(text) > MAX_DIGITS or not -NUMBER_MAX <= int(text) <= NUMBER_MAX:
        raise argparse.ArgumentTypeError("a number is too large")
    return int(text)


def positive(text: str) -> int:
    """Read an option's number, 1 or more."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def size(text: str) -> int:
    """Read a number of bytes: 4096, 512M, 8G."""
    number, unit = (text[:-1], text[-1:]) if text[-1:] in UNITS else (text, "")
    return positive(number) * UNITS[unit]


def add_unpacking(parser: argparse.ArgumentParser) -> None:
    """Add `--max-unpacked SIZE`: `args.max_unpacked`, or None."""
    parser.add_argument(
        "--max-unpacked", type=size, metavar="SIZE",
        help="unpack compressed input up to SIZE in memory, for example 8G (default: 100 times its "
             "own size, at least 64M, at most half of this machine's memory)",
    )  # fmt: skip


def _trace_directory(text: str) -> Path:
    """Read the directory of `-o`; refuse the name of a trace."""
    path = Path(text)
    if path.name.startswith(".nfsdb"):
        raise argparse.ArgumentTypeError(
            f"{text}: -o takes a directory, and the trace is DIR/.nfsdb: write -o {path.parent}"
        )
    return path


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o DIR`, for commands that capture."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=_trace_directory,
        default=Path(),
        help="where the trace goes (default: here)",
    )


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add `--dbdir`: `args.database`, a Path, or None for $DB_DIR or the working directory."""
    parser.add_argument(
        "--dbdir",
        "--dir",
        dest="database",
        metavar="DIR",
        type=Path,
        help="directory of the database, its image or its .nfsdb.json (default: $DB_DIR or here)",
    )


def _add_fed(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    parser.add_argument(
        f"--{name}", dest=name, metavar=metavar, type=os.fsencode, action="append", default=None,
        help=text,
    )  # fmt: skip


def add_paths(parser: argparse.ArgumentParser, *, positional: bool = False) -> None:
    """Add `--path PATH`, many times, and with `positional` FILE...: `args.path`, list of bytes."""
    _add_fed(parser, "path", "PATH", "a file; may be given several times")
    if positional:
        parser.add_argument(
            "path", metavar="FILE", nargs="*", type=os.fsencode, action="extend", default=None,
            help="a file; the same as --path FILE",
        )  # fmt: skip


def add_binaries(parser: argparse.ArgumentParser) -> None:
    """Add `--binary PATH`, many times: `args.binary`, a list of bytes or None."""
    _add_fed(parser, "binary", "PATH", "a program; may be given several times")


def add_pids(parser: argparse.ArgumentParser) -> None:
    """Add `--pid UPID[:INDEX]`, many times: `args.pid`, a list of bytes or None."""
    _add_fed(
        parser, "pid", "PID[:INDEX]", "a process, or one execution; may be given several times"
    )
