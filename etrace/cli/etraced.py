# SPDX-License-Identifier: Apache-2.0
"""`etraced`: the service that traces with the kernel module for members of a group."""

from __future__ import annotations

import argparse
from pathlib import Path

from etrace.capture.remote.service import GROUP, SOCKET
from etrace.cli.ending import say
from etrace.cli.options.common import Parser, add_version, positive
from etrace.errors import UsageError

PROGRAM = "etraced"
SUMMARY = "trace with the kernel module for members of group etrace"
IDLE_S = 300
EPILOG = """\
systemd starts it when a member of group etrace runs `etrace run`: see etraced.socket and
docs/service.md. Elsewhere, root runs it with --listen. It serves one session at a time and ends
when nobody has asked for anything for some minutes. On SIGTERM a running session ends with what
it has.
"""


def make_parser() -> argparse.ArgumentParser:
    """Declare the command line."""
    parser = Parser(prog=PROGRAM, description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", epilog=EPILOG)
    parser.add_argument(
        "--listen",
        metavar="PATH",
        nargs="?",
        type=Path,
        const=Path(SOCKET),
        help=f"make the socket (default: {SOCKET}); without it, systemd does",
    )
    parser.add_argument(
        "--group",
        metavar="GROUP",
        default=GROUP,
        help="group that may use the socket of --listen (default: %(default)s)",
    )
    parser.add_argument(
        "--idle",
        metavar="SECONDS",
        type=positive,
        default=IDLE_S,
        help="end after so long without a connection (default: %(default)s)",
    )
    add_version(parser)
    return parser


def main(argv: list[str]) -> int:
    """Run the command; return its exit status."""
    args = make_parser().parse_args(argv)
    from etrace.capture.kmod.host import Host
    from etrace.capture.kmod.system.owner import need_root
    from etrace.service.daemon import Daemon, inherited_socket, make_socket

    need_root()
    listener = inherited_socket()
    if listener is None and args.listen is not None:
        listener = make_socket(args.listen, args.group)
    if listener is None:
        raise UsageError("there is no socket to serve", "start etraced.socket, or give --listen")
    with listener:
        Daemon(listener, Host(), lambda text: say(f"{PROGRAM}: {text}\n"), args.idle).run()
    return 0
