# SPDX-License-Identifier: Apache-2.0
"""`etrace serve`: the queries of `cas` as JSON over HTTP, and a page that asks them; read-only.

`endpoints` says which queries and options there are, `words` turns a request into the words of a
command line, `worker` answers it in a process of its own, `access` decides who may ask,
`connections` how long they may take, `app` puts them together. Needs starlette and uvicorn.
"""

from __future__ import annotations

import argparse
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etrace.capture import features
from etrace.cli.ending import tell
from etrace.cli.options.common import positive
from etrace.errors import EtraceError, UsageError

if TYPE_CHECKING:
    from libetrace.image.file import Image

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
        "databases",
        metavar="DB",
        nargs="*",
        type=Path,
        help="directory of a database, its image or its .nfsdb.json (default: here)",
    )
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


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        import starlette as _  # noqa: F401
        import uvicorn
    except ImportError:
        raise EtraceError(
            "etrace serve needs starlette and uvicorn",
            features.install_hint(features.WEB, features.WEB_OF_DEBIAN),
        ) from None
    from etrace.cli.serve.access import Access, hosts_of
    from etrace.cli.serve.app import Server
    from etrace.cli.serve.connections import BACKLOG, N_CONNECTIONS, Connection, Crowd
    from etrace.cli.serve.endpoints import endpoints
    from etrace.cli.serve.worker import Limits

    images = _open_all(args.databases or [Path()])
    endpoints()  # imports every query now, so that the processes of questions have them
    with _listening(args.host, args.port) as listener:
        access = Access(hosts_of(args.host))
        server = Server(images, access, Limits(seconds=args.timeout))
        _announce(listener, args.host, access.token, images)
        connection: Any = partial(Connection, access=access, crowd=Crowd())
        config = uvicorn.Config(
            server.app(), http=connection, log_level="error", access_log=False, lifespan="off",
            limit_concurrency=N_CONNECTIONS, backlog=BACKLOG, timeout_keep_alive=5,
            server_header=False, ws="none",
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _open_all(paths: list[Path]) -> dict[str, Image]:
    """Open the databases and their configurations; their names are those of their directories."""
    from libetrace.depend.configuration import keep

    from etrace.nfsdb.store import open_database

    images: dict[str, Image] = {}
    for path in paths:
        where = path.resolve()
        name = (where if where.is_dir() else where.parent).name or "build"
        if name in images:
            raise UsageError(f"two databases are called {name}", "rename one of the directories")
        images[name] = open_database(path)
        keep(images[name].path.parent)
    return images


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


def _announce(listener: socket.socket, host: str, token: str, names: dict[str, Any]) -> None:
    tell(f"etrace: serving {', '.join(names)}; whoever has this address can read all of it.\n")
    if not host.startswith(LOOPBACK):
        tell("etrace: other machines reach it, and its answers are not encrypted.\n")
    if sys.stderr is not None and sys.stderr.isatty():
        tell("etrace: Ctrl-C ends it.\n")
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{port}/#token={token}", flush=True)
