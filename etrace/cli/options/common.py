# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from etrace.cli import spellings

#: argparse's message about unknown options
_UNKNOWN = r"unrecognized arguments: (--[\w-]+)"
VERSION_HELP = "show the version and features, and exit"
MAX_DIGITS, NUMBER_MAX = 20, (1 << 63) - 1
#: bytes of a size's last letter
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _columns() -> int:
    """Return the width of the terminal as argparse would, without the slow `shutil`."""
    try:
        return int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        return 80


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Formats help, lines of texts unchanged; argparse makes one for every declared option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class Parser(argparse.ArgumentParser):
    """A parser that suggests an option for an unknown one."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, **given})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with the names that are not shown."""
        spellings.accept(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with the usage and a message."""
        unknown = re.match(_UNKNOWN, message)
        if unknown:
            from etrace.alike import nearest

            known = [name for each in self._actions for name in each.option_strings]
            near = nearest(unknown[1], known)
            message += f"; did you mean {' or '.join(near)}?" if near else ""
        super().error(message)


class VersionAction(argparse.Action):
    """Print the version and end; `features` are names of etrace.capture.features.

    Features are probed only here, so --help and the commands do not pay for them.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        self.features: tuple[str, ...] = options.pop("features")
        super().__init__(
            option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=VERSION_HELP
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print; SystemExit."""
        from etrace.capture import features

        print(features.version(parser.prog, *self.features))
        parser.exit()


def add_hash(parser: argparse._ActionsContainer) -> None:
    """Add `--hash`."""
    parser.add_argument(
        "--hash", action="store_true",
        help="print the SHA-256 of each file before it, or why there is none (JSON: git_blob, too)",
    )  # fmt: skip


def add_two_builds(parser: argparse.ArgumentParser) -> None:
    """Add A and B."""
    for name, text in (("a", "the build before"), ("b", "the build after")):
        parser.add_argument(
            name, metavar=name.upper(), type=Path,
            help=f"{text}: directory of its database, image or .nfsdb.json",
        )  # fmt: skip


def add_examples(parser: argparse.ArgumentParser, *examples: str) -> None:
    """End the help of a command with command lines to copy."""
    before = f"{parser.epilog.rstrip()}\n\n" if parser.epilog else ""
    parser.epilog = f"{before}examples:\n" + "".join(f"  {example}\n" for example in examples)


def add_version(parser: argparse.ArgumentParser, *features: str) -> None:
    """Give a program `--version`."""
    parser.add_argument("--version", action=VersionAction, features=features)


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


def add_output(
    parser: argparse.ArgumentParser,
    default: Path | None = Path(),
    text: str = "directory of the trace, which is made if need be (default: here)",
) -> None:
    """Add `-o DIR`, for commands that make a trace or its database."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=_trace_directory, default=default, help=text
    )


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add `--db`: `args.database`, a Path, or None: see etrace/cli/opening.py."""
    parser.add_argument(
        "--db",
        dest="database",
        metavar="DIR",
        type=Path,
        help="directory of the database, its image or its .nfsdb.json (default: $DB_DIR, here, or "
        "the nearest directory above that has one)",
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add DIR and `--db DIR`, for commands about one database: see etrace/cli/opening.py."""
    add_database(parser)
    parser.add_argument(
        "place", metavar="DIR", nargs="?", type=Path,
        help="directory of the database, as --db DIR",
    )  # fmt: skip


def add_format(
    parser: argparse._ActionsContainer, *formats: str, text: str = "format of the output"
) -> None:
    """Add `--format`, the first by default, and its short form `--json`: `args.format`."""
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help=f"{text} (default: %(default)s)"
    )
    if "json" in formats:
        parser.add_argument(
            "--json", dest="format", action="store_const", const="json", help="as --format json"
        )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add `-q`, for commands that report what they do."""
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add `-j`."""
    parser.add_argument(
        "-j", "--jobs", type=positive, default=0, metavar="N",
        help="threads (default: one for each CPU)",
    )  # fmt: skip


def _add_fed(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    parser.add_argument(
        f"--{name}", dest=name, metavar=metavar, type=os.fsencode, action="append", default=None,
        help=text,
    )  # fmt: skip


def add_paths(parser: argparse.ArgumentParser, *, positional: bool = False) -> None:
    """Add `--path PATH`, many times, and with `positional` FILE...: `args.path`, list of bytes."""
    _add_fed(parser, "path", "PATH", "a file; may be repeated")
    if positional:
        parser.add_argument(
            "path", metavar="FILE", nargs="*", type=os.fsencode, action="extend", default=None,
            help="a file; the same as --path FILE",
        )  # fmt: skip


def add_binaries(parser: argparse.ArgumentParser) -> None:
    """Add `--binary PATH`, many times: `args.binary`, a list of bytes or None."""
    _add_fed(parser, "binary", "PATH", "a program; may be repeated")


def add_pids(parser: argparse.ArgumentParser) -> None:
    """Add `--pid UPID[:INDEX]`, many times: `args.pid`, a list of bytes or None."""
    _add_fed(parser, "pid", "PID[:INDEX]", "a process, or one execution; may be repeated")
