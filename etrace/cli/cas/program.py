# SPDX-License-Identifier: Apache-2.0
"""`cas COMMAND ...`: commands over a database, and queries that can be piped into each other.

A *plain command* (PLAIN) prints itself and takes the whole command line after its name:

    def declare_NAME(parser: argparse.ArgumentParser) -> None
    def run_NAME(args: argparse.Namespace) -> int

A *query* (QUERIES) prints nothing:

    def declare_NAME(parser: argparse.ArgumentParser) -> None
    def answer_NAME(image: Image, args: argparse.Namespace) -> Answer

`answer_NAME` returns entries (show/answer.py), and this module shows those of the last query in the
pipeline as the options of show/output.py say; `--db` and these options are added to every query.
The result of the query before arrives in `args` as if it had been written on the command line:
`args.path`, `args.binary` (lists of bytes) or `args.pid` (list of `upid` or `upid:index`, bytes),
whichever of the shape's `feeds` the query has declared (etrace/cli/options/common.py). A query
whose `takes_nothing_NAME(args)` is true gets None as `image`, and no database is opened.

The functions of a command that has a module to itself need no _NAME.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from etrace.cli import spellings
from etrace.cli.ending import one_line, say, stop_on_sigterm
from etrace.cli.options.common import Parser, add_database, add_version
from etrace.cli.show import output
from etrace.errors import UsageError
from etrace.query.select.remarks import listeners

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.cli.show.answer import Answer


class Loaded(NamedTuple):
    """The functions of a command, once its module is imported."""

    declare: Callable[[argparse.ArgumentParser], None]
    answer: Callable[[Any, argparse.Namespace], Answer]  #: of a query
    run: Callable[[argparse.Namespace], int]  #: of a plain command
    takes_nothing: Callable[[argparse.Namespace], bool] | None


class CasCommand(NamedTuple):
    """One `cas NAME`; `module` is imported only when the command runs."""

    name: str
    aliases: tuple[str, ...]  #: short names
    module: str
    summary: str
    checks_rows: bool = False  #: it reads an image that was not scanned: see `run_pipeline`

    @property
    def names(self) -> tuple[str, ...]:
        """All names, also those that are not shown."""
        return (self.name, *self.aliases, *spellings.COMMANDS.get(self.name, ()))

    def load(self) -> Loaded:
        """Import the module: `declare_NAME`, .., or `declare`, .. when it has one command."""
        name = f"etrace.cli.cas.{self.module}"
        __import__(name)
        module, own = sys.modules[name], self.name.replace("-", "_")
        functions = (
            getattr(module, f"{what}_{own}", None) or getattr(module, what, None)
            for what in Loaded._fields
        )
        return Loaded(*functions)  # type: ignore[arg-type]


def _family(module: str, *rows: tuple[str, str, str], checks_rows: bool = False) -> Commands:
    """Return the commands of one module: (name, aliases, summary) of each."""
    return tuple(
        CasCommand(name, tuple(aliases.split()), module, summary, checks_rows)
        for name, aliases, summary in rows
    )


Commands = tuple[CasCommand, ...]
QUERIES: Commands = (
    *_family(
        "compilations",
        ("linked-modules", "lm m", "executables, shared objects and archives that the build made"),
        ("compiled", "cc", "files that the build compiled"),
        ("compilation-info-for", "ci", "how files were compiled"),
        ("revcomps-for", "rcomps", "compiled files whose compilation read a file"),
        ("includes", "", "what headers cost the build"),
    ),
    *_family(
        "executions",
        ("commands", "cmds", "executions that ran a program"),
        ("execs", "ex", "all executions, also those before the first exec"),
        ("tree", "", "the process tree"),
        ("binaries", "bins b", "programs that the build ran"),
    ),
    *_family(
        "dependencies",
        ("deps", "", "the dependencies of files"),
        ("rdeps", "", "linked modules or all files that depend on files"),
        ("moddeps", "", "linked modules that files depend on"),
        ("revmoddeps", "", "linked modules that depend on linked modules"),
        checks_rows=True,
    ),
    *_family(
        "files",
        ("unused", "", "sources that the build never read"),
        ("ref-files", "refs", "files that the build opened"),
        ("faccess", "fa", "executions that opened files, and their access"),
        ("procref", "pr", "files that processes opened"),
    ),
    *_family("info", ("info", "", "counts, versions, configuration and where the build began")),
)
PLAIN: Commands = (
    *_family(
        "database",
        ("parse", "", "make a database from a trace"),
        ("cache", "", "make the image again when it is stale or damaged"),
    ),
    *_family("export", ("export", "", "write compile_commands.json, an SBOM, a build spec, ..")),
    *_family("sql", ("sql", "", "query the database in SQL with DuckDB")),
    *_family(
        "pp", ("pp", "", "add linked modules, compilations, wrapping shells, command patterns")
    ),
    *_family("dependencies", ("why", "", "how a file depends on another, or why it does not")),
    *_family("diff", ("diff", "", "what changed between two builds")),
)
COMMANDS: tuple[CasCommand, ...] = QUERIES + PLAIN

SUMMARY = "query the database of a build"

_BY_NAME = {name: c for c in COMMANDS for name in c.names}
_BY_NAME |= dict.fromkeys(spellings.FACTS, _BY_NAME["info"])
_PIPED = frozenset(name for name, c in _BY_NAME.items() if c in QUERIES)


#: queries about single opens, or about who made them
_OF_OPENS = frozenset(("ref-files", "faccess", "procref", "execs", "commands", "binaries", "tree"))


class Step(NamedTuple):
    """One query of a pipeline, its parser, its words, and the word that names the next one."""

    command: CasCommand
    loaded: Loaded
    parser: argparse.ArgumentParser
    words: list[str]
    next_module: str


def find(name: str) -> CasCommand:
    """Return the command of this name or alias; UsageError names the nearest ones."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    from etrace.alike import nearest

    near = nearest(name, (name for c in COMMANDS for name in (c.name, *c.aliases)))
    hint = f"did you mean {' or '.join(near)}?" if near else "cas --help lists them"
    raise UsageError(f"no command {name!r}", hint)


def common_parser() -> argparse.ArgumentParser:
    """Declare the options that are allowed before the first query."""
    parser = Parser(add_help=False, allow_abbrev=False)
    add_database(parser)
    output.add_options(parser)
    spellings.accept(parser)
    return parser


def make_parser(command: CasCommand, loaded: Loaded) -> argparse.ArgumentParser:
    """Declare one command."""
    parser = Parser(
        prog=f"cas {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        allow_abbrev=False,
    )
    loaded.declare(parser)
    if command in QUERIES:
        add_database(parser)
        output.add_options(parser)
    spellings.accept(parser)
    return parser


def _n_values(parser: argparse.ArgumentParser, word: str) -> int:
    """Return how many words after an option are its values; argparse has no public way."""
    action = parser._option_string_actions.get(word)
    if action is None:  # unknown, --option=value or -ovalue
        return 0
    return action.nargs if isinstance(action.nargs, int) else int(action.nargs is None)


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Return where the next query's name is, or the end: values of options are not names."""
    at = 0
    while at < len(words):
        if words[at] == "--":
            return len(words)
        if words[at] in _PIPED:
            return at
        at += 1 + (_n_values(parser, words[at]) if words[at].startswith("-") else 0)
    return min(at, len(words))


def steps_of(words: Sequence[str]) -> list[Step]:
    """Cut a command line, which begins with a name, into the commands of its pipeline."""
    steps, rest = [], list(words)
    while rest:
        name, *rest = rest
        command = find(name)
        rest = [*filter(None, [spellings.FACTS.get(name)]), *rest]
        loaded = command.load()
        parser = make_parser(command, loaded)
        at = split(parser, rest)
        steps.append(Step(command, loaded, parser, rest[:at], "".join(rest[at : at + 1])))
        rest = rest[at:]
    return steps


def feed(answer: Answer, given: argparse.Namespace, step: Step) -> str:
    """Pass the entries of an answer to the next query; returns the option that takes them."""
    for option in answer.shape.feeds:
        if hasattr(given, option):
            values = getattr(given, option) or []
            fed = dict.fromkeys(answer.shape.feed(item, option) for item in answer.items)
            setattr(given, option, [*values, *fed])
            given.fed = True
            return option
    kinds = " or ".join(f"--{option}" for option in answer.shape.feeds) or "no option"
    raise UsageError(
        f"{step.command.name} cannot take the result of the query before it ({kinds})",
        f"cas {step.command.name} --help lists what it takes",
    )


def warn_of_filters(before: argparse.Namespace, given: argparse.Namespace, step: Step) -> None:
    """Warn that filters of the query before do not select entries of this one.

    They chose files by their opens; this module is about all opens of these files.
    """
    if step.command.name not in _OF_OPENS:
        return
    from etrace.query.select.filters import is_of_opens, parse_opens

    lost = {
        "--filter": is_of_opens(parse_opens(getattr(before, "filters", ()))) and not given.filters,
        "--command-filter": getattr(before, "command_filters", ()) and not given.command_filters,
    }
    for option in (option for option, is_lost in lost.items() if is_lost):
        say(
            f"cas: {option} selected files, and {step.command.name} takes all opens of them."
            f" To filter those opens, put {option} after {step.command.name}.\n"
        )


def _answer(
    step: Step, args: argparse.Namespace, images: dict[Any, Image], *, is_checked: bool
) -> Answer:
    if step.loaded.takes_nothing and step.loaded.takes_nothing(args):
        return step.loaded.answer(None, args)
    from etrace.cli.opening import open_found

    if args.database not in images:
        images[args.database] = open_found(args, is_checked=is_checked)
    answer = step.loaded.answer(images[args.database], args)
    if getattr(args, "hash", False):
        from etrace.cli.show.hashes import with_hashes

        return with_hashes(answer, images[args.database])
    return answer


@lru_cache(maxsize=64)  # a query may look for a name several times
def _print_remark(text: str) -> None:
    say(f"cas: {one_line(text)}\n")


listeners.append(_print_remark)


def run_pipeline(
    steps: Sequence[Step], common: argparse.Namespace, opened: Image | None = None
) -> int:
    """Run each query on the result of the one before, and print the result of the last.

    With `opened` no database is opened: this image is that of `common`. A module with CHECKS_ROWS
    takes an image that nobody has scanned: a row that does not exist is an IndexError, and the scan
    then says which column is damaged.
    """
    images: dict[Any, Image] = {} if opened is None else {common.database: opened}
    try:
        return _run_pipeline(steps, common, images)
    except IndexError:
        from etrace.nfsdb.products import check_rows

        for image in images.values():
            check_rows(image)
        raise


def _run_pipeline(
    steps: Sequence[Step], common: argparse.Namespace, images: dict[Any, Image]
) -> int:
    is_checked = not all(step.command.checks_rows for step in steps)
    answer: Answer | None = None
    args = common
    for step in steps:
        is_last, before = step is steps[-1], args
        args = step.parser.parse_intermixed_args(
            step.words, output.carried(args, common, is_last=is_last)
        )
        args.fed, args.next_module = False, step.next_module
        if getattr(args, "path", None) == []:  # argparse's value without a FILE
            args.path = None
        if answer is not None and feed(answer, args, step) == "path":
            warn_of_filters(before, args, step)
        answer = output.arranged(_answer(step, args, images, is_checked=is_checked), args)
    assert answer is not None
    root = images[args.database].attributes.get("source_root", "") if images else ""
    models = [image.path for image in images.values()]
    return output.show(answer, args, os.fsencode(root), models)


def run_query(words: Sequence[str], image: Image, page_size: int) -> int:
    """Run `cas WORDS`, a query on an open image, in pages of `page_size`."""
    common = common_parser().parse_args([])
    common.database, common.usual_page_size = image.path, page_size
    return run_pipeline(steps_of(words), common, image)


def _leading(words: Sequence[str]) -> int:
    """Return the number of words before the first query."""
    parser, at = common_parser(), 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 + _n_values(parser, words[at])
    return min(at, len(words))


def top_parser() -> argparse.ArgumentParser:
    """Declare `cas` without a query: its help lists them."""
    width = max(len(", ".join((c.name, *c.aliases))) for c in COMMANDS)

    def listing(commands: Sequence[CasCommand]) -> str:
        rows = ((", ".join((c.name, *c.aliases)), c.summary) for c in commands)
        return "\n".join(f"  {names:<{width}}  {summary}" for names, summary in rows)

    parser = argparse.ArgumentParser(
        prog="cas",
        usage="cas [OPTIONS] COMMAND [OPTIONS] [QUERY [OPTIONS]]...",
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.\n\n"
        f"queries; each takes the result of the one before it:\n{listing(QUERIES)}\n\n"
        f"commands:\n{listing(PLAIN)}",
        epilog="`cas COMMAND --help` explains a command. --db or $DB_DIR names the database.\n"
        "exit status: 0 found; 1 nothing found, or no; 2 wrong usage, damaged input, failure",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_version(parser, "gcc plugin", "zstd command", "analytics")
    return parser


def _parse_plain(
    parser: argparse.ArgumentParser, before: Sequence[str], after: Sequence[str]
) -> argparse.Namespace:
    """Parse a command's words; options may be before its name as well."""
    args, unknown = parser.parse_known_intermixed_args([*before, *after])
    if unknown and unknown[0] in before:
        parser.error(f"{unknown[0]} is not an option of this command")
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def main(argv: Sequence[str]) -> int:
    """Run `cas` with these words; returns its exit status."""
    at = _leading(argv)
    if at == len(argv) or {"-h", "--help", "--version"} & set(argv[:at]):
        top = top_parser()
        top.parse_known_args(argv[:at])
        top.print_help(sys.stderr)
        return UsageError.status
    command = find(argv[at])
    if command in QUERIES:
        parser = common_parser()
        parser.prog = "cas"
        common = parser.parse_args(argv[:at])
        return run_pipeline(steps_of(argv[at:]), common)
    loaded = command.load()
    args = _parse_plain(make_parser(command, loaded), argv[:at], argv[at + 1 :])
    stop_on_sigterm()  # these commands write: unfinished files must be removed
    return int(loaded.run(args))
