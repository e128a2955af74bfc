# SPDX-License-Identifier: Apache-2.0
"""The messages of etraced and its clients (docs/service.md): one JSON object a packet.

The socket is of type SOCK_SEQPACKET (unix(7)): a packet arrives whole, with its descriptors, or not
at all. A request holds a verb and words of RECORDED, and nothing else: no path, no number.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
from typing import Any

from etrace.capture.kmod.system.control import RECORDED, Option, options_of
from etrace.errors import CaptureError

VERSION = 1
#: a request is much shorter; a longer one is refused
MAX_REQUEST_BYTES = 1024
#: the stats of a session are about 4 kB
MAX_REPLY_BYTES = 128 << 10
#: of a request `trace`: the trace, opened for reading and writing, and a pidfd of the process
N_DESCRIPTORS = 2

PROBE, TRACE, PROGRESS, STOP = "probe", "trace", "progress", "stop"
VERBS = (PROBE, TRACE, PROGRESS, STOP)


class ProtocolError(CaptureError):
    """The other side sent something that is not a message."""

    def __init__(self, what: str) -> None:
        super().__init__(f"etraced or its client sent {what}", "are they of one version?")


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send a message with descriptors. OSError when the other side is gone or does not read."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([json.dumps(message).encode("ascii")], rights)


def ask(
    sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()
) -> dict[str, Any] | None:
    """Send the first request and return the answer; see `receive`.

    An etraced that refuses the connection says so without waiting for a request.
    """
    with contextlib.suppress(BrokenPipeError):
        send(sock, message, fds)
    return receive(sock, MAX_REPLY_BYTES)[0]


def receive(
    sock: socket.socket, max_bytes: int, n_fds: int = 0
) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the next message and its descriptors; None when the other side has closed.

    ProtocolError for whatever is too long, has other descriptors or is no JSON object; then no
    descriptor is left open. OSError of recvmsg(2), TimeoutError among them.
    """
    space = socket.CMSG_SPACE((n_fds or 1) * array.array("i").itemsize)
    data, ancillary, flags, _ = sock.recvmsg(max_bytes, space, socket.MSG_CMSG_CLOEXEC)
    fds = _descriptors(ancillary)
    try:
        _refuse_odd(flags, len(fds), n_fds)
        return (_parse(data) if data else None), fds
    except ProtocolError:
        close_all(fds)
        raise


def _refuse_odd(flags: int, n_found: int, n_wanted: int) -> None:
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise ProtocolError("too much")
    if n_found not in (0, n_wanted):
        raise ProtocolError("descriptors that nobody asked for")


def close_all(fds: list[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def _parse(data: bytes) -> dict[str, Any]:
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("no JSON") from error
    if not isinstance(raw, dict):
        raise ProtocolError("no JSON object")
    return raw


def request(verb: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a request."""
    return {"etraced": VERSION, "do": verb, **({"options": list(options)} if options else {})}


def read_request(raw: dict[str, Any]) -> tuple[str, Option]:
    """Return the verb and the options of a request; ProtocolError for anything unknown in it."""
    if raw.get("etraced") != VERSION:
        raise ProtocolError("a request of another version")
    verb, words = raw.get("do"), raw.get("options", [])
    if verb not in VERBS or raw.keys() - {"etraced", "do", "options"}:
        raise ProtocolError("an unknown request")
    if not isinstance(words, list) or not all(
        isinstance(word, str) and word in RECORDED for word in words
    ):
        raise ProtocolError("an unknown option")
    return verb, options_of(words)
