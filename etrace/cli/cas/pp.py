# SPDX-License-Identifier: Apache-2.0
"""`cas pp`: adds linked modules, compilations, wrapping shells and command patterns."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from etrace.cli.ending import printable, say
from etrace.cli.options.common import add_database, add_examples, add_jobs, add_quiet
from etrace.cli.terminal import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from libetrace.depend.configuration import Config
    from libetrace.image.file import Image

    from etrace.postprocess.run import Result

#: phase -> its option and help
PHASES = {
    "linked": (("--linked",), "find modules that linkers and archivers made (l, t)"),
    "compilations": (("--compilations",), "find compilations (d)"),
    "wrappers": (("--wrappers",), "find the shell that wraps each command (m)"),
    "patterns": (
        ("--patterns",),
        "match command lines with the patterns of .bas_config (n)",
    ),
    "graph": (("--graph",), "store the dependency graph: uses of files in order of time"),
    "targets": (
        ("--targets",),
        "read what makefiles and build.ninja declare, and find for which target each command ran",
    ),
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas pp`."""
    add_database(parser)
    phases = parser.add_argument_group("phases (default: all)")
    for name, (options, text) in PHASES.items():
        phases.add_argument(*options, dest=name, action="store_true", help=text)
    add_jobs(parser)
    parser.add_argument(
        "--ask-compilers", dest="is_asking", action="store_true",
        help="run the build's compilers, if only root can change them, to find their built-in "
        "include directories; prints each command",
    )  # fmt: skip
    parser.add_argument(
        "--confirm-inputs", action="store_true",
        help="also confirm the input files of each compilation with a plugin of gcc",
    )  # fmt: skip
    parser.add_argument(
        "--no-rules", dest="is_reading_rules", action="store_false",
        help="do not read makefiles and build.ninja; they are read only for builds that you "
        "captured on this machine",
    )  # fmt: skip
    parser.add_argument(
        "--no-shell", dest="is_shell_allowed", action="store_false",
        help="read no makefiles that use $(shell); its commands run in a sandbox",
    )  # fmt: skip
    parser.add_argument(
        "--list-unread", action="store_true",
        help="only list missing response files, with the upids of their commands",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true",
                        help="run phases again even if they are up to date")  # fmt: skip
    parser.add_argument("--no-json", action="store_true", help="leave .nfsdb.json unchanged")
    add_quiet(parser)
    add_examples(parser, "cas pp", "cas pp --linked --compilations --force")


def _meant(key: str) -> str:
    from libetrace.depend.configuration import KEYS

    from etrace.alike import nearest

    near = nearest(key, KEYS, 1)
    return f"; did you mean {near[0]}?" if near else ", ignored"


def report_config(config: Config) -> None:
    """Report the errors of the configuration."""
    for key in config.unknown:
        say(f"cas pp: warning: {config.path}: unknown key {key!r}{_meant(key)}\n")


def teller(args: argparse.Namespace) -> Callable[[str], None]:
    """Return a function that prints a message on one line, or nothing with --quiet."""
    if args.quiet:
        return lambda _text: None
    return lambda text: say("cas pp: " + text.replace("\n", "\\n") + "\n")


def line(result: Result) -> str:
    """Return the line about one phase."""
    return f"{result.phase:<13} {result.text or 'unchanged: its inputs are the same'}"


def _jobs(args: argparse.Namespace) -> int:
    """Return the number of threads, and of compilers to run at a time."""
    return args.jobs or os.cpu_count() or 1


def update(args: argparse.Namespace, image: Image) -> list[Result]:
    """Run the phases of the command line and store their products in the image."""
    from libetrace.depend import configuration

    from etrace.postprocess.run import PHASES as ORDER
    from etrace.postprocess.run import postprocess

    config = configuration.load(image.path.parent)
    if not args.quiet:
        report_config(config)
    chosen = [name for name in ORDER if getattr(args, name)] or list(ORDER)
    results: list[Result] = []
    with progress(is_wanted=not args.quiet, patience_seconds=0) as show:
        postprocess(
            image, config, chosen,
            jobs=_jobs(args), force=args.force, is_asking=args.is_asking,
            is_reading_rules=args.is_reading_rules, is_shell_allowed=args.is_shell_allowed,
            progress=show,
            say=teller(args), report=results.append,
        )  # fmt: skip
    return results


def report_unseen(image: Image) -> None:
    """Report what was compiled where the trace does not see it, and what to do about it."""
    from etrace.query.diagnosis import unlisted

    for note in unlisted(image).notes():
        say(f"cas pp: {note.text}\n  hint: {note.cure}; see docs/exports.md\n")


def confirm_inputs(args: argparse.Namespace, image: Image) -> None:
    """Compare the inputs with those that gcc names, and warn of differences."""
    from libetrace.depend import configuration

    from etrace.postprocess.compilations.confirmed_inputs import confirm, find_plugin

    config = configuration.load(image.path.parent)
    with progress(is_wanted=not args.quiet, patience_seconds=0) as show:
        answers = confirm(image, config, find_plugin(), _jobs(args), show, teller(args))
    for answer in answers:
        if answer.named is not None and not answer.is_same:
            found, named = (b" ".join(paths).decode(errors="replace") for paths in answer.files)
            say(f"cas pp: warning: the database has {found}, but gcc compiles {named}\n")
    n_same = sum(answer.is_same for answer in answers)
    n_silent = sum(answer.named is None for answer in answers)
    if not args.quiet:
        print(f"{'inputs':<13} {n_same} of {len(answers)} confirmed, {n_silent} without an answer")


def list_unread(image: Image) -> None:
    """Print the commands that are only partly known, with their missing response files."""
    from etrace.errors import EtraceError

    if "unread_response_files" not in image.tables:
        raise EtraceError(f"{image.path} has no compilations yet", "run: cas pp")
    table, upids = image["unread_response_files"], image["executions"]["upid"]
    for row, string in zip(table["execution"], table["string"], strict=True):
        path = image.string(string).decode("utf-8", "surrogateescape")
        print(printable(f"{upids[row]} {path}".replace("\n", "\\n")))


def run(args: argparse.Namespace) -> int:
    """Run `cas pp`."""
    from etrace.cli.opening import open_found
    from etrace.nfsdb.products import reopen
    from etrace.nfsdb.to_json import is_due, unknown_keys, write_back

    image = open_found(args)
    if args.list_unread:
        list_unread(image)
        return 0
    results = update(args, image)
    if not args.quiet:
        print("\n".join(map(line, results)), flush=True)
        report_unseen(reopen(image.path))
    if args.confirm_inputs:
        confirm_inputs(args, reopen(image.path))
    is_new = not all(result.is_reused for result in results)
    image = reopen(image.path)
    if args.no_json or not is_due(image, is_new=is_new):
        return 0
    if unknown_keys(image):
        say(
            f"cas pp: the JSON is not rewritten: it has {unknown_keys(image)} keys that etrace "
            "does not know; to write it with the products and without these keys: cas export json\n"
        )
    else:
        write_back(image.path)
    return 0
