# SPDX-License-Identifier: Apache-2.0
"""`etrace serve`: the queries of `cas` as JSON over HTTP, and pages that ask them; read-only.

`endpoints` says which queries and options there are and turns a request into the words of a command
line, `fleet` answers for `etrace fleet`, `worker` runs a question in a process of its own,
`connections` decides who may ask and how long they may take, `app` puts them together. Needs
starlette and uvicorn.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from etrace.capture import features
from etrace.cli.ending import say
from etrace.cli.opening import found_above
from etrace.cli.options.common import add_examples, positive
from etrace.errors import EtraceError, UsageError

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.cli.serve.fleet import Fleet
    from etrace.cli.serve.worker import Limits

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8420
LOOPBACK = ("127.", "::1", "localhost")


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 65535")
    return number


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace serve`."""
    add = parser.add_argument
    add(
        "--db",
        dest="database",
        action="append",
        default=[],
        metavar="DIR",
        type=Path,
        help="directory of a database, its image or its .nfsdb.json; may be repeated (default: "
        "$DB_DIR, here, or the nearest directory above that has one)",
    )
    add(
        "--live",
        metavar="DIR",
        type=Path,
        help="follow the build that is being traced into DIR: its report grows in the browser",
    )
    add(
        "--fleet",
        metavar="DIR",
        help="directory of a fleet, or s3://BUCKET/PATH: trends, slowest steps, products of a file",
    )
    add("databases", metavar="DIR", nargs="*", type=Path, help="the same as --db DIR")
    add(
        "--host",
        default=DEFAULT_HOST,
        metavar="ADDRESS",
        help="address to listen at (default: %(default)s, which only this machine reaches)",
    )
    add(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        metavar="N",
        help="port to listen at; 0: any free one (default: %(default)s)",
    )
    add(
        "--timeout",
        type=positive,
        default=60,
        metavar="SECONDS",
        help="end a request that takes longer (default: %(default)s)",
    )
    add_examples(
        parser,
        "etrace serve",
        "etrace serve --db before --db after --port 0",
        "etrace serve --fleet /srv/fleet",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        import starlette as _  # noqa: F401
        import uvicorn
    except ImportError:
        raise EtraceError(
            "etrace serve needs starlette and uvicorn",
            features.install_hint(features.WEB),
        ) from None
    from etrace.cli.serve.app import Server
    from etrace.cli.serve.connections import (
        BACKLOG,
        N_CONNECTIONS,
        Access,
        Connection,
        Crowd,
        hosts_of,
    )
    from etrace.cli.serve.endpoints import endpoints
    from etrace.cli.serve.live import Live
    from etrace.cli.serve.worker import Limits

    given = [*args.database, *args.databases]
    images = _open_all(given or ([] if args.live or args.fleet else [found_above()]))
    limits = Limits(seconds=args.timeout)
    fleet = _open_fleet(args.fleet, limits) if args.fleet else None
    endpoints()  # imports every query now, so that the processes of questions have them
    with ExitStack() as stack:
        lives = {
            each.name: stack.enter_context(each)
            for each in map(Live, [args.live] if args.live else [])
        }
        if twice := lives.keys() & images.keys():
            raise UsageError(
                f"two databases are called {min(twice)}", "rename one of the directories"
            )
        _close_at_the_end(stack)
        listener = stack.enter_context(_listening(args.host, args.port))
        access = Access(hosts_of(args.host))
        server = Server(images, access, limits, lives, fleet)
        _announce(listener, args.host, access.token, [*images], [*lives], fleet)
        connection: Any = partial(Connection, access=access, crowd=Crowd())
        config = uvicorn.Config(
            server.app(), http=connection, log_level="error", access_log=False, lifespan="off",
            limit_concurrency=N_CONNECTIONS, backlog=BACKLOG, timeout_keep_alive=5,
            server_header=False, ws="none",
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _close_at_the_end(stack: ExitStack) -> None:
    """Remove what a running build left when SIGTERM ends the server, which uvicorn raises again."""

    def close(number: int, _frame: object) -> None:
        stack.close()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, close)


def _open_all(paths: Sequence[Path | None]) -> dict[str, Image]:
    """Open the databases and their configurations; their names are those of their directories."""
    from libetrace.depend.configuration import keep

    from etrace.nfsdb.files import locate
    from etrace.nfsdb.store import open_database

    images: dict[str, Image] = {}
    for path in paths:
        where = locate(path).trace.parent.resolve()
        name = where.name or "build"
        if name in images:
            raise UsageError(f"two databases are called {name}", "rename one of the directories")
        images[name] = open_database(path)
        keep(images[name].path.parent)
    return images


def _open_fleet(place: str, limits: Limits) -> Fleet:
    """Return a fleet that can be read; a process of its own has tried. EtraceError."""
    from etrace.cli.serve import worker
    from etrace.cli.serve.fleet import Fleet
    from etrace.query.sql import load_duckdb

    load_duckdb("etrace serve --fleet")
    if "://" in place:  # the processes of questions have it then
        import pyarrow.dataset as _  # noqa: F401  an extra
    fleet = Fleet(place)
    asyncio.run(worker.answer(fleet.described(), limits))
    return fleet


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; EtraceError names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise EtraceError(f"{host} port {port}: {reason}", "choose another: --port N") from None
    return listener


def _announce(
    listener: socket.socket, host: str, token: str, names: Sequence[str], running: Sequence[str],
    fleet: Fleet | None,
) -> None:  # fmt: skip
    served = ", ".join([*names, *running, *([f"fleet {fleet.name}"] if fleet else [])])
    say(f"etrace: serving {served}; whoever has this address can read all of it.\n")
    if not host.startswith(LOOPBACK):
        say("etrace: other machines reach it, and its answers are not encrypted.\n")
    if sys.stderr is not None and sys.stderr.isatty():
        say("etrace: Ctrl-C ends it.\n")
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    if names or running:
        print(f"http://{shown}:{port}/#token={token}", flush=True)
    if fleet:
        print(f"http://{shown}:{port}/fleet#token={token}", flush=True)
    for name in running:  # the page that follows the build
        print(f"http://{shown}:{port}/report?build={quote(name)}#token={token}", flush=True)
