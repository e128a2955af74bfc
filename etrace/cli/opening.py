# SPDX-License-Identifier: Apache-2.0
"""The options of a command -> the open database that it is about.

Without `--db` and $DB_DIR that is the one of the working directory, else of the nearest directory
above (etrace/nfsdb/above.py), which is named on standard error. Views (`etrace summary`, `report`)
make first what is missing or stale: they parse the trace and add what `cas pp` adds. Queries of
`cas` do so only where there is no database yet: else they answer from what the user made.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from libetrace.image.file import Image

from etrace.cli.ending import say
from etrace.errors import EtraceError, UsageError
from etrace.nfsdb.above import find_above
from etrace.nfsdb.files import CAPTURING, DatabaseFiles, locate
from etrace.nfsdb.store import StaleError, open_database


def find(args: argparse.Namespace) -> Path | None:
    """Return the place of the database of `--db`, or found above. UsageError, EtraceError."""
    where: Path | None = args.database
    given = getattr(args, "place", None)
    if given is not None and where is not None:
        raise UsageError("two databases are given", "leave out DIR or --db")
    where = where or given
    return where or found_above(is_quiet=getattr(args, "quiet", False))


def found_above(*, is_quiet: bool = False) -> Path | None:
    """Return the directory above with a database, and name it; None for the working directory."""
    there = find_above()
    if there is not None and not is_quiet:
        say(f"{_program()}: the database is that of {there.resolve()}\n")
    return there


def _program() -> str:
    return os.path.basename(sys.argv[0]) or "etrace"  # noqa: PTH119


def open_found(args: argparse.Namespace, *, is_checked: bool = True) -> Image:
    """Open the database of `--db`, or the one found above. EtraceError, OSError.

    A directory that has a trace and no database gets one first.
    """
    where = find(args)
    files = locate(where)
    is_directory = where is None or where.is_dir()
    if is_directory and files.has_trace and not files.has_database:
        return prepared(where, is_quiet=getattr(args, "quiet", False))
    return open_database(where, is_checked=is_checked)


def open_view(args: argparse.Namespace) -> Image:
    """Open the database of a view, made first when it is missing or stale. EtraceError, OSError."""
    return prepared(find(args), is_quiet=getattr(args, "quiet", False))


# ---- what is made first ----


def prepared(where: Path | None, *, is_quiet: bool = False) -> Image:
    """Open a database; parse its trace first if need be, and add what `cas pp` adds.

    A database that was named by its file, or that has no trace beside it, is taken unchanged.
    EtraceError, OSError.
    """
    files = locate(where)
    if where is not None and not where.is_dir():
        return open_database(where)
    _refuse_running(files)
    if not files.has_trace:
        _refuse_nothing(files)
        return open_database(where)
    try:
        if not files.has_database:
            _parse(files, is_quiet=is_quiet)
        image = open_database(where)
    except StaleError:
        _parse(files, is_quiet=is_quiet)
        image = open_database(where)
    return _post_processed(image, is_quiet=is_quiet)


def _refuse_running(files: DatabaseFiles) -> None:
    """Refuse a build that is being traced: its trace has no end yet."""
    from etrace.capture.files import is_being_written

    for trace in (files.trace, files.trace.with_name(CAPTURING)):
        try:
            is_running = trace.is_file() and is_being_written(trace)
        except OSError:  # it went away, or belongs to another user: parsing says so
            continue
        if is_running:
            raise EtraceError(
                f"{trace}: the build is still being traced",
                "wait for its end; etrace top shows what runs",
            )


def _refuse_nothing(files: DatabaseFiles) -> None:
    if not files.has_database:
        raise EtraceError(
            f"{files.image.parent}: no trace and no database",
            "make one: etrace run -- make -j8; or name its directory: --db DIR",
        )


def _parse(files: DatabaseFiles, *, is_quiet: bool) -> None:
    from etrace.cli.ending import stop_on_sigterm
    from etrace.cli.parser import hide_progress, show_progress
    from etrace.parse.database import find_trace, parse_database

    trace = find_trace(files.trace.parent)
    stop_on_sigterm()  # unfinished files must be removed
    shows = sys.stderr.isatty() and not is_quiet
    if not is_quiet:
        say(f"{_program()}: parsing {os.path.relpath(trace)}\n")
    try:
        progress = show_progress(time.monotonic()) if shows else None
        parsed = parse_database([trace], files, progress=progress)
    finally:
        if shows:
            hide_progress()
    for problem in parsed.problems:
        say(f"{_program()}: {problem}\n")


def _post_processed(image: Image, *, is_quiet: bool) -> Image:
    """Add the phases of `cas pp` that an image lacks, unless its directory cannot be written to."""
    from libetrace.depend import configuration

    from etrace.cli.ending import stop_on_sigterm
    from etrace.cli.terminal import progress
    from etrace.nfsdb.products import reopen
    from etrace.postprocess.run import ATTRIBUTE, PHASES, postprocess

    done = image.attributes.get(ATTRIBUTE) or {}
    missing = [name for name in PHASES if name not in done]
    if not missing or not os.access(image.path.parent, os.W_OK | os.X_OK):
        return image
    stop_on_sigterm()
    if not is_quiet:
        say(f"{_program()}: finding {', '.join(missing)}\n")
    with progress(is_wanted=not is_quiet, patience_seconds=0) as show:
        postprocess(
            image, configuration.load(image.path.parent), missing,
            jobs=os.cpu_count() or 1, progress=show,
        )  # fmt: skip
    return reopen(image.path)
