# SPDX-License-Identifier: Apache-2.0
"""The socket of etraced: whose it is, and the answer to those who may not use it."""

from __future__ import annotations

import grp
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fake_kernel import NOBODY
from service.host import DROP, python

from etrace.capture.remote import service
from etrace.errors import CaptureError
from etrace.service import daemon

pytestmark = pytest.mark.root

PROBE = f"""{DROP}
import socket, sys
import etrace.capture.backend, etrace.capture.remote.protocol, etrace.errors
from etrace.capture.kmod.backend import KmodBackend
from etrace.capture.kmod.system import presence
from etrace.capture.remote import service
service.SOCKET = sys.argv[1]
presence.LOADED_MODULES = "/proc"  # the kernel takes modules
drop()
backend = KmodBackend()
probe = backend.probe()
print(backend.is_out_of_question(), probe.works, probe.reason, probe.hint, sep="|")
"""


def asked(path: Path) -> list[str]:
    """What an ordinary user learns of the backend."""
    process = python(PROBE, str(path))
    out, _ = process.communicate(timeout=60)
    return out.decode().strip().split("|")


def test_only_its_group_may_use_the_socket(public: Path) -> None:
    path = public / "etraced.sock"
    with daemon.make_socket(path, grp.getgrgid(1).gr_name):
        found = path.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, 1, 0o660)
        out, works, reason, hint = asked(path)
    assert (out, works) == ("True", "False")
    assert "membership in group etrace" in reason
    assert hint.startswith("sudo usermod -aG etrace")


def test_a_member_of_its_group_may(public: Path) -> None:
    path = public / "new" / "etraced.sock"
    with daemon.make_socket(path, grp.getgrgid(NOBODY.gid).gr_name) as sock:
        source = f"drop(); import socket; s = socket.socket(1, 5); s.connect({str(path)!r})"
        python(f"import socket\n{DROP}\n{source}").wait(30)
        sock.settimeout(10)
        sock.accept()[0].close()


def test_without_a_socket_the_way_to_one_is_named(public: Path) -> None:
    out, works, reason, hint = asked(public / "none")
    assert (out, works) == ("True", "False")
    assert "etraced, which does not listen here" in reason
    assert "systemctl enable --now etraced.socket" in hint


def test_a_socket_that_nobody_serves_is_said_to_be_so(public: Path) -> None:
    path = public / "etraced.sock"
    daemon.make_socket(path, grp.getgrgid(NOBODY.gid).gr_name).close()
    out, works, reason, _ = asked(path)
    assert (out, works) == ("False", "False")
    assert "Connection refused" in reason


def test_a_group_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no group no-such-group") as caught:
        daemon.make_socket(tmp_path / "s", "no-such-group")
    assert "groupadd" in caught.value.hint


def test_the_socket_of_systemd_is_taken(tmp_path: Path) -> None:
    source = (
        "import os; os.environ |= {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '1'}\n"
        "from etrace.service import daemon; print(daemon.inherited_socket().getsockname())"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.bind(str(tmp_path / "s"))
        third = f'exec "$0" "$@" 3<&{sock.fileno()}'  # this process may need its own 3
        done = subprocess.run(
            ["bash", "-c", third, sys.executable, "-c", source], pass_fds=[sock.fileno()],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "s")


def test_the_path_of_the_socket_is_that_of_the_unit() -> None:
    unit = Path(__file__).parents[2] / "packaging/templates/systemd/etraced.socket.j2"
    assert f"ListenSequentialPacket={service.SOCKET}\n" in unit.read_text()
    assert f"SocketGroup={service.GROUP}\n" in unit.read_text()
