# SPDX-License-Identifier: Apache-2.0
"""Whether etraced can be asked to trace: found out at little cost, for each `etrace run` asks."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from etrace.capture.backend import Probe

SOCKET = "/run/etrace/etraced.sock"
GROUP = "etrace"
#: etraced answers a probe at once, also while it runs a session
ANSWER_S = 10.0


def may_be_asked() -> bool:
    """Whether there is a socket that this user may open."""
    return os.access(SOCKET, os.R_OK | os.W_OK, effective_ids=True)


def obstacle() -> Probe | None:
    """Return why etraced cannot be asked; None when it can."""
    from etrace.capture.backend import Probe

    if may_be_asked():
        return None
    if not os.path.exists(SOCKET):
        return Probe(
            False,
            "the kernel module needs root, or the service etraced, which does not listen here",
            "sudo systemctl enable --now etraced.socket, or sudo etrace run ...",
            expected=True,
        )
    return Probe(
        False,
        f"the kernel module needs root, or membership in group {GROUP}, whom etraced serves",
        f'sudo usermod -aG {GROUP} "$USER" and log in again, or sudo etrace run ...',
        expected=True,
    )


def connect() -> socket.socket:
    """Return a connection to etraced; CaptureError when it does not answer."""
    import socket

    from etrace.errors import CaptureError

    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(ANSWER_S)
    try:
        sock.connect(SOCKET)
    except OSError as error:
        sock.close()
        raise CaptureError(
            f"{SOCKET}: {error.strerror or 'no answer'}", "systemctl status etraced.socket"
        ) from error
    return sock


def ask(sock: socket.socket, request: dict[str, Any], fds: tuple[int, ...] = ()) -> dict[str, Any]:
    """Send the first request of a connection; CaptureError when etraced refuses it or is silent."""
    from etrace.capture.remote import protocol
    from etrace.errors import CaptureError

    try:
        reply = protocol.ask(sock, request, fds)
    except OSError as error:
        raise CaptureError(
            f"etraced does not answer: {error.strerror or error}", "journalctl -u etraced"
        ) from error
    if reply is None:
        raise CaptureError("etraced closed the connection", "journalctl -u etraced")
    if "error" in reply:
        raise CaptureError(str(reply["error"]), str(reply.get("hint", "journalctl -u etraced")))
    return reply


def probe() -> Probe:
    """Ask etraced whether it could trace now."""
    from etrace.capture.backend import Probe
    from etrace.errors import CaptureError

    if (found := obstacle()) is not None:
        return found
    from etrace.capture.remote import protocol

    try:
        with connect() as sock:
            ask(sock, protocol.request(protocol.PROBE))
    except CaptureError as error:
        return Probe(False, error.message, error.hint)
    return Probe(True, "etraced has the module loaded, and it answers")
