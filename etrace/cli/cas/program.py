# SPDX-License-Identifier: Apache-2.0
"""`cas MODULE ...`: commands over a database, and queries that can be piped into each other.

A *plain command* (PLAIN) has `declare(parser)` and `run(args) -> int`, prints itself and takes the
whole command line behind its name.

A *query module* (QUERIES) has

    def declare(parser: argparse.ArgumentParser) -> None
    def answer(image: Image, args: argparse.Namespace) -> Answer

and prints nothing: `answer` returns entries (show/answer.py), and this module shows those of the
last one in the pipeline as the options of show/output.py say. `--dbdir` and those options are added
to every query module. The result of the module before arrives in `args` as if it had been written
on the command line: `args.path`, `args.binary` (lists of bytes) or `args.pid` (list of `upid` or
`upid:index`, bytes), whichever of the shape's `feeds` the module has. The module has one of them
when it called `add_paths`, `add_binaries` or `add_pids` of etrace/cli/options/common.py. A module
with `TAKES_NOTHING = True`, or whose `takes_nothing(args)` is true, gets None as `image`, and no
database is opened.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from etrace.cli.ending import stop_on_sigterm, tell
from etrace.cli.options.common import Parser, add_database
from etrace.cli.show import output
from etrace.cli.version import add_version
from etrace.errors import UsageError

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.cli.show.answer import Answer


class CasCommand(NamedTuple):
    """One `cas NAME`; `module` is imported only when the command runs."""

    name: str
    aliases: tuple[str, ...]
    module: str
    summary: str
    fact: str = ""  #: the object in the module that is the command, when several share it

    def load(self) -> Any:
        """Import the module; return what has `declare`, and `answer` or `run`."""
        name = f"etrace.cli.cas.{self.module}"
        __import__(name)
        module = sys.modules[name]
        return getattr(module, self.fact) if self.fact else module


def _query(name: str, aliases: str, summary: str) -> CasCommand:
    return CasCommand(name, tuple(aliases.split()), name, summary)


def _fact(name: str, aliases: str, summary: str) -> CasCommand:
    return CasCommand(name, tuple(aliases.split()), "facts", summary, name)


QUERIES: tuple[CasCommand, ...] = (
    _query(
        "linked_modules", "lm m", "executables, shared objects and archives that the build made"
    ),
    _query("compiled", "cc", "files that the build compiled"),
    _query("compilation_info_for", "ci", "how files were compiled"),
    _query("revcomps_for", "rcomps", "compiled files whose compilation read a file"),
    _query("commands", "cmds", "executions that ran a program"),
    _query("execs", "ex", "all executions, also those before the first exec"),
    _query("tree", "", "the process tree"),
    _query("binaries", "bins b", "programs that the build ran"),
    _query("deps", "deps_for", "the dependencies of files"),
    _query("rdeps", "revdeps_for", "linked modules, or all files, that depend on files"),
    _query("moddeps", "moddeps_for", "linked modules that files depend on"),
    _query("revmoddeps", "revmoddeps_for", "linked modules that depend on linked modules"),
    _query("includes", "", "what headers cost the build"),
    _query("unused", "", "sources that the build never read"),
    _query("ref_files", "refs", "files that the build opened"),
    _query("faccess", "fa", "executions that opened files, and their access"),
    _query("procref", "pr", "files that processes opened"),
    _fact("stat", "", "counts of everything in the database"),
    _fact("root_pid", "rpid", "the first process of the build"),
    _fact("source_root", "sroot", "the directory where the build began"),
    _fact("version", "ver", "versions of the database and of etrace"),
    _fact("config", "cfg", "the configuration that `cas pp` uses"),
    _fact("compiler_pattern", "", "globs of the programs that count as compilers"),
    _fact("linker_pattern", "", "globs of the programs that count as linkers and archivers"),
)
PLAIN: tuple[CasCommand, ...] = (
    CasCommand("parse", (), "parse", "make a database from a trace"),
    CasCommand("cache", (), "cache", "make the image again when it is stale or damaged"),
    CasCommand("export", (), "export", "write compile_commands.json, a build spec, JSON, .."),
    CasCommand("sql", (), "sql", "query the database in SQL with DuckDB"),
    CasCommand(
        "pp",
        ("postprocess",),
        "pp",
        "add linked modules, compilations, wrapping shells, command patterns",
    ),
    CasCommand("why", (), "why", "how a file depends on another, or why it does not"),
    CasCommand("diff", (), "diff", "what changed between two builds"),
)
COMMANDS: tuple[CasCommand, ...] = QUERIES + PLAIN

SUMMARY = "query the database of a build"

_BY_NAME = {name: c for c in COMMANDS for name in (c.name, *c.aliases)}
_PIPED = frozenset(name for c in QUERIES for name in (c.name, *c.aliases))


#: queries about single opens, or about who made them
_OF_OPENS = frozenset(("ref_files", "faccess", "procref", "execs", "commands", "binaries", "tree"))


class Step(NamedTuple):
    """One module of a pipeline, its parser, its words, and the word that names the next one."""

    command: CasCommand
    module: Any
    parser: argparse.ArgumentParser
    words: list[str]
    next_module: str


def find(name: str) -> CasCommand:
    """Return the command of this name or alias; UsageError names the nearest ones."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    from etrace.alike import nearest

    near = nearest(name, _BY_NAME)
    hint = f"did you mean {' or '.join(near)}?" if near else "cas --help lists them"
    raise UsageError(f"no module {name!r}", hint)


def common_parser() -> argparse.ArgumentParser:
    """Declare the options that are allowed before the first module."""
    parser = Parser(add_help=False, allow_abbrev=False)
    add_database(parser)
    output.add_options(parser)
    return parser


def make_parser(command: CasCommand, module: Any) -> argparse.ArgumentParser:
    """Declare one command."""
    parser = Parser(
        prog=f"cas {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        allow_abbrev=False,
    )
    module.declare(parser)
    if command in QUERIES:
        add_database(parser)
        output.add_options(parser)
    return parser


def _n_values(parser: argparse.ArgumentParser, word: str) -> int:
    """Return how many words after an option are its values; argparse has no public way."""
    action = parser._option_string_actions.get(word)
    if action is None:  # unknown, --option=value or -ovalue
        return 0
    return action.nargs if isinstance(action.nargs, int) else int(action.nargs is None)


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Return where the next module's name is, or the end: values of options are no names."""
    at = 0
    while at < len(words):
        if words[at] == "--":
            return len(words)
        if words[at] in _PIPED:
            return at
        at += 1 + (_n_values(parser, words[at]) if words[at].startswith("-") else 0)
    return min(at, len(words))


def steps_of(first: CasCommand, words: Sequence[str]) -> list[Step]:
    """Cut a command line into the modules of its pipeline."""
    steps, command, rest = [], first, list(words)
    while True:
        module = command.load()
        parser = make_parser(command, module)
        at = split(parser, rest)
        steps.append(Step(command, module, parser, rest[:at], "".join(rest[at : at + 1])))
        if at == len(rest):
            return steps
        command, rest = find(rest[at]), rest[at + 1 :]


def feed(answer: Answer, given: argparse.Namespace, step: Step) -> str:
    """Pass the entries of an answer to the next module; returns the option that takes them."""
    for option in answer.shape.feeds:
        if hasattr(given, option):
            values = getattr(given, option) or []
            fed = dict.fromkeys(answer.shape.feed(item, option) for item in answer.items)
            setattr(given, option, [*values, *fed])
            given.fed = True
            return option
    kinds = " or ".join(f"--{option}" for option in answer.shape.feeds) or "no module"
    raise UsageError(
        f"{step.command.name} cannot take the result of the module before it ({kinds})",
        f"cas {step.command.name} --help lists what it takes",
    )


def warn_of_filters(before: argparse.Namespace, given: argparse.Namespace, step: Step) -> None:
    """Warn that filters of the module before do not select entries of this one.

    They chose files by their opens; this module is about all opens of these files.
    """
    if step.command.name not in _OF_OPENS:
        return
    from etrace.query.given.filters import is_of_opens, parse_opens

    lost = {
        "--filter": is_of_opens(parse_opens(getattr(before, "filters", ()))) and not given.filters,
        "--command-filter": getattr(before, "command_filters", ()) and not given.command_filters,
    }
    for option in (option for option, is_lost in lost.items() if is_lost):
        tell(
            f"cas: {option} selected files, and {step.command.name} takes all opens of them."
            f" To filter those opens, put {option} after {step.command.name}.\n"
        )


def _takes_nothing(module: Any, args: argparse.Namespace) -> bool:
    names_its_own = getattr(module, "takes_nothing", None)
    return bool(names_its_own(args) if names_its_own else getattr(module, "TAKES_NOTHING", False))


def _answer(
    step: Step, args: argparse.Namespace, images: dict[Any, Image], *, is_checked: bool
) -> Answer:
    ask: Callable[[Image | None, argparse.Namespace], Answer] = step.module.answer
    if _takes_nothing(step.module, args):
        return ask(None, args)
    from etrace.nfsdb.store import open_database

    if args.database not in images:
        images[args.database] = open_database(args.database, is_checked=is_checked)
    return ask(images[args.database], args)


def run_pipeline(
    steps: Sequence[Step], common: argparse.Namespace, opened: Image | None = None
) -> int:
    """Run each module on the result of the one before, and print the result of the last.

    With `opened` no database is opened: this image is that of `common`. A module with CHECKS_ROWS
    takes an image that nobody has scanned: a row that does not exist is an IndexError, and the scan
    then says which column is damaged.
    """
    images: dict[Any, Image] = {} if opened is None else {common.database: opened}
    try:
        return _run_pipeline(steps, common, images)
    except IndexError:
        from etrace.nfsdb.store import check_rows

        for image in images.values():
            check_rows(image)
        raise


def _run_pipeline(
    steps: Sequence[Step], common: argparse.Namespace, images: dict[Any, Image]
) -> int:
    is_checked = not all(getattr(step.module, "CHECKS_ROWS", False) for step in steps)
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
        answer = output.chosen(_answer(step, args, images, is_checked=is_checked), args)
    assert answer is not None
    root = images[args.database].attributes.get("source_root", "") if images else ""
    models = [image.path for image in images.values()]
    return output.show(answer, args, os.fsencode(root), models)


def run_query(words: Sequence[str], image: Image) -> int:
    """Run `cas WORDS`, a query without `--dbdir`, on an image that is open."""
    common = common_parser().parse_args([])
    common.database = image.path
    return run_pipeline(steps_of(find(words[0]), words[1:]), common, image)


def _leading(words: Sequence[str]) -> int:
    """Return the number of words before the first module."""
    parser, at = common_parser(), 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 + _n_values(parser, words[at])
    return min(at, len(words))


def top_parser() -> argparse.ArgumentParser:
    """Declare `cas` without a module: its help lists them."""
    width = max(len(", ".join((c.name, *c.aliases))) for c in COMMANDS)

    def listing(commands: Sequence[CasCommand]) -> str:
        rows = ((", ".join((c.name, *c.aliases)), c.summary) for c in commands)
        return "\n".join(f"  {names:<{width}}  {summary}" for names, summary in rows)

    parser = argparse.ArgumentParser(
        prog="cas",
        usage="cas [OPTIONS] MODULE [OPTIONS] [MODULE [OPTIONS]]...",
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.\n\n"
        f"queries; each takes the result of the one before it:\n{listing(QUERIES)}\n\n"
        f"commands:\n{listing(PLAIN)}",
        epilog="`cas MODULE --help` explains a module. --dbdir or $DB_DIR names the database.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_version(parser, "gcc_plugin", "zstd_command", "analytics")
    return parser


def _parse_plain(
    parser: argparse.ArgumentParser, before: Sequence[str], behind: Sequence[str]
) -> argparse.Namespace:
    """Parse a command's words; options may stand before its name as well."""
    args, unknown = parser.parse_known_intermixed_args([*before, *behind])
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
        return run_pipeline(steps_of(command, argv[at + 1 :]), common)
    module = command.load()
    args = _parse_plain(make_parser(command, module), argv[:at], argv[at + 1 :])
    stop_on_sigterm()  # these commands write: unfinished files must be removed
    return int(module.run(args))
