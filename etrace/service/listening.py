# SPDX-License-Identifier: Apache-2.0
"""The socket that etraced serves: systemd's (sd_listen_fds(3)), or one that it makes itself."""

from __future__ import annotations

import grp
import os
import socket
from pathlib import Path

from etrace.errors import CaptureError

FIRST_FD = 3
MODE = 0o660
BACKLOG = 32


def inherited() -> socket.socket | None:
    """Return the socket that systemd has passed; None when it has not started this process."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    sock = socket.socket(fileno=FIRST_FD)
    sock.set_inheritable(False)
    if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
        raise CaptureError(
            "the socket of LISTEN_FDS is no local packet socket",
            "etraced.socket has ListenSequentialPacket=",
        )
    return sock


def made(path: Path, group: str) -> socket.socket:
    """Return a new socket at `path` for the members of `group`; an old one there is replaced."""
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise CaptureError(f"there is no group {group}", f"groupadd --system {group}") from error
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = os.umask(0o022)
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        if path.is_socket():
            path.unlink()
        os.umask(0o777)
        sock.bind(os.fspath(path))
        os.chown(path, -1, gid)
        path.chmod(MODE)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise CaptureError(f"{path}: {error.strerror}", "run it as root") from error
    finally:
        os.umask(before)
    return sock
