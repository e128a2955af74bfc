# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet add`: write a build into a fleet, redacted. No build of CI fails by it."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.core.errors import Error

from etrace.cli.ending import say
from etrace.cli.fleet.options import add_fleet, place_of
from etrace.cli.opening import found_above, prepared
from etrace.cli.options.common import add_examples, add_quiet
from etrace.errors import EtraceError, UsageError
from etrace.figures import count

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.fleet.dataset import Dataset
    from etrace.fleet.record import About
    from etrace.fleet.redaction import Redactor

EPILOG = """\
exit status: 0, also when the build could not be added, so that a build of CI does not fail by it;
with --strict 2 then. A build that the fleet cannot take now waits in the spool, and the next
`etrace fleet add` sends it.
"""


def declare_add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet add`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "place", metavar="DIR", nargs="?", type=Path,
        help="directory of the database (default: $DB_DIR, here, or the nearest above)",
    )  # fmt: skip
    add_fleet(parser)
    parser.add_argument(
        "--build-id", metavar="ID", required=True,
        help="what names this build in the whole fleet; a second build of this ID is not added",
    )  # fmt: skip
    parser.add_argument(
        "--project", metavar="NAME", help="what was built (default: name of its directory)"
    )
    parser.add_argument(
        "--label", metavar="NAME=VALUE", action="append", default=[],
        help="a fact about the build: commit, branch, team, runner; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--time", metavar="TIME", help="end of the build, ISO 8601 (default: that of its trace)"
    )
    parser.add_argument(
        "--create", action="store_true",
        help="make the fleet if there is none (default: the build waits in the spool)",
    )  # fmt: skip
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--environment", metavar="GLOB", action="append", default=[],
        help="also write these variables (default: none); may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--redact", metavar="REGEX", action="append", default=[],
        help="hide what matches in every text; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--user", metavar="NAME", action="append", default=[],
        help="hide this name of a user, too; may be repeated",
    )  # fmt: skip
    group.add_argument("--no-commands", action="store_true", help="leave command lines out")
    group.add_argument(
        "--no-packages", action="store_true", help="do not look up the packages that own files"
    )
    group = parser.add_argument_group("when something fails")
    group.add_argument(
        "--spool", metavar="DIR", type=Path,
        help="where builds wait, in a directory for each fleet (default: $XDG_STATE_HOME/etrace)",
    )  # fmt: skip
    group.add_argument("--no-spool", action="store_true", help="keep nothing for later")
    group.add_argument(
        "--strict", action="store_true", help="fail when the fleet has not the build"
    )
    add_quiet(parser)
    add_examples(
        parser,
        "etrace fleet add --fleet /srv/fleet --build-id 4711 --label commit=4f2a91c",
        "etrace fleet add traces --fleet s3://builds/fleet --build-id 4712 --project lua --strict",
    )


def run_add(args: argparse.Namespace) -> int:
    """Run `etrace fleet add`."""
    place, labels, time = place_of(args), _labels(args.label), _time(args.time)
    try:
        image = prepared(args.place or found_above(is_quiet=args.quiet), is_quiet=args.quiet)
        about, redactor = _described(args, image, labels, time)
        return _add(args, place, image, about, redactor)
    except UsageError:
        raise
    except (EtraceError, Error) as error:
        return _failed(args, error.message, error.hint)
    except OSError as error:
        return _failed(args, _reason(error, place))


def _failed(args: argparse.Namespace, message: str, hint: str = "") -> int:
    say(f"etrace: the build is not in the fleet: {message}\n")
    if hint:
        say(f"  hint: {hint}\n")
    return EtraceError.status if args.strict else 0


def _labels(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--label {text}: not NAME=VALUE", "--label commit=4f2a91c")
        found[name] = value
    return found


def _time(text: str | None) -> datetime.datetime | None:
    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--time {text}: {error}", "--time 2026-11-27T15:04:05Z") from error
    return found.astimezone(datetime.UTC).replace(tzinfo=None) if found.tzinfo else found


def _described(
    args: argparse.Namespace, image: Image, labels: dict[str, str], time: datetime.datetime | None
) -> tuple[About, Redactor]:
    from etrace.fleet.dataset import check_name
    from etrace.fleet.record import About, end_of
    from etrace.fleet.redaction import Redactor, user_of

    redactor = Redactor(image, args.redact, args.user, owner=user_of(image.path))
    root = str(image.attributes.get("source_root", "")).rstrip("/")
    project = args.project or redactor.text(os.path.basename(root)) or "build"  # noqa: PTH119
    if redactor.without_secrets(args.build_id) != args.build_id:
        raise UsageError("--build-id holds a secret", "give another")
    about = About(
        check_name("--build-id", args.build_id),
        check_name("--project", project),
        time or end_of(image),
        {name: redactor.label(name, value) for name, value in labels.items()},
        args.environment,
        with_commands=not args.no_commands,
        with_packages=not args.no_packages,
    )
    return about, redactor


def _add(
    args: argparse.Namespace, place: str, image: Image, about: About, redactor: Redactor
) -> int:
    from etrace.fleet.dataset import open_dataset
    from etrace.fleet.spool import spool_folder

    spool = spool_folder(place, os.environ, args.spool)
    dataset = open_dataset(place, [image.path])
    try:
        is_new = dataset.add(image, about, redactor, make=args.create)
    except UsageError:
        raise
    except (EtraceError, OSError) as error:
        if args.no_spool:
            raise
        reason = error.message if isinstance(error, EtraceError) else _reason(error, place)
        return _keep(args, spool, reason, image, about, redactor)
    if not args.quiet:
        state = "added" if is_new else "there already"
        say(f"etrace: build {about.build} is in {dataset.store.place}: {state}\n")
    if not args.no_spool:
        _send(args, spool, dataset)
    return 0


def _reason(error: OSError, place: str) -> str:
    from etrace.fleet.store import shown_place

    return f"{error.filename or shown_place(place)}: {error.strerror or error}"


def _keep(
    args: argparse.Namespace, spool: Path, reason: str, image: Image, about: About,
    redactor: Redactor,
) -> int:  # fmt: skip
    from etrace.fleet.dataset import open_dataset
    from etrace.fleet.spool import check_owner

    check_owner(spool)
    open_dataset(spool, [image.path]).add(image, about, redactor, make=True)
    say(
        f"etrace: {reason}\n"
        f"  hint: the build waits in {spool}; the next etrace fleet add sends it\n"
    )
    return EtraceError.status if args.strict else 0


def _send(args: argparse.Namespace, spool: Path, dataset: Dataset) -> None:
    from etrace.fleet.spool import check_owner, send

    try:
        check_owner(spool)
    except EtraceError as error:
        say(f"etrace: {error.message}: nothing of it is sent\n")
        return
    n_sent, n_dropped = send(spool, dataset)
    if (n_sent or n_dropped) and not args.quiet:
        dropped = f"; {n_dropped} were there already or are forgotten" if n_dropped else ""
        say(f"etrace: {count(n_sent, 'build')} of {spool} sent{dropped}\n")
