# SPDX-License-Identifier: Apache-2.0
"""etraced as its callers see it: sessions, and what ends them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
from pathlib import Path

import pytest
from fake_kernel import NOBODY
from service.host import Service, answer
from trying import LIMIT_S, until

from etrace.capture.remote import protocol
from etrace.service import connection, daemon

pytestmark = pytest.mark.root
CLEAN = ["the module is loaded"]


def recording(service: Service) -> bool:
    state = service.machine.states.read()
    return state is not None and state.session > 0


def test_a_user_gets_a_trace_of_their_own(service: Service, public: Path) -> None:
    status, remarks, stats = service.run(public, "true")
    assert (status, remarks) == (0, [])
    trace = (public / ".nfsdb").read_text().splitlines()
    assert trace == ["INITCWD=/", "4194305,0,1,0!Exit|status=0"]
    assert json.loads((public / ".nfsdb.stats").read_text()) == stats
    assert (stats["backend"], stats["ended"], stats["exit_status"]) == ("kmod", "exit", 0)
    for name in (".nfsdb", ".nfsdb.stats"):
        found = (public / name).stat()
        assert (found.st_uid, found.st_mode & 0o777) == (NOBODY.uid, 0o600)
    assert service.machine.changes() == CLEAN


def test_the_commands_status_is_the_captures(service: Service, public: Path) -> None:
    assert service.run(public, "sh", "-c", "exit 7")[0] == 7
    assert service.run(public, "no-such-command-here")[0] == 127


def test_a_loss_is_reported_and_noted_in_the_trace(service: Service, public: Path) -> None:
    service.machine.behave(records=4)
    status, remarks, stats = service.run(public, "true")
    assert status == 125
    assert (stats["lost"], "6 events are lost" in remarks[0]) == (6, True)
    assert "[LOST 6 EVENTS]" in (public / ".nfsdb").read_text()


def test_one_session_at_a_time(service: Service, public: Path) -> None:
    first = service.client(public, "sleep", "3")
    until(lambda: recording(service))
    other = public / "other"
    message, hint = service.run(other, "true")
    assert "a session is already running: process" in message
    assert "without the module" in hint
    assert not list(other.glob(".nfsdb*"))
    assert answer(first)[0] == 0


def test_the_session_ends_with_its_caller(service: Service, public: Path) -> None:
    client = service.client(public, "sleep", "60")
    until(lambda: recording(service))
    client.kill()
    client.wait()
    until(lambda: service.machine.changes() == CLEAN)
    assert service.run(public, "true")[0] == 0
    assert (public / ".nfsdb.partial").exists()


def test_a_killed_collector_gets_a_successor(service: Service, public: Path) -> None:
    client = service.client(public, "sh", "-c", "sleep 2; exit 0")
    until(lambda: recording(service))
    (pid,) = service.machine.collectors()
    os.kill(pid, signal.SIGKILL)
    status, remarks, stats = answer(client)
    assert (status, stats["ended"], stats["collectors"]) == (0, "exit", 2)
    assert "another one continues the trace" in remarks[0]
    assert (public / ".nfsdb").exists()
    assert service.machine.changes() == CLEAN


def test_a_full_disk_is_named(service: Service, public: Path) -> None:
    full = {"error": "No space left on device", "ended": "write-error", "lost": 3}
    service.machine.behave(stats=full)
    status, remarks, stats = service.run(public, "true")
    assert (status, stats["ended"]) == (125, "write-error")
    assert any("No space left on device" in remark for remark in remarks)


def test_a_stop_of_the_service_ends_the_session_and_says_so(service: Service, public: Path) -> None:
    client = service.client(public, "sh", "-c", f": >{public}/up; sleep 2")
    until((public / "up").exists)
    service.stop()
    status, remarks, _ = answer(client)
    assert status == 125
    assert any("etraced was stopped during the session" in remark for remark in remarks)
    assert "Exit|status=0" in (public / ".nfsdb").read_text()
    assert service.machine.changes() == CLEAN


def test_a_killed_service_leaves_a_trace_and_the_next_one_cleans_up(
    service: Service, public: Path
) -> None:
    client = service.client(public, "sh", "-c", f": >{public}/up; sleep 2")
    until((public / "up").exists)
    service.stop(signal.SIGKILL)
    service.machine.end_collectors()  # as systemd kills the whole control group
    status, remarks, stats = answer(client)
    assert (status, stats["ended"]) == (125, "service-died")
    assert any("etraced ended during the session" in remark for remark in remarks)
    assert (public / ".nfsdb").read_text().startswith("INITCWD=/\n")
    assert service.machine.changes() != CLEAN
    service.start()
    until(lambda: service.machine.changes() == CLEAN)
    assert "was cut off; it is cleaned up" in service.said.read_text()
    assert service.run(public, "true")[0] == 0


def test_a_probe_says_whether_a_session_could_begin(service: Service) -> None:
    assert service.ask(protocol.request(protocol.PROBE)) == {"works": True}


def test_without_the_module_the_way_to_it_is_named(service: Service, public: Path) -> None:
    service.stop()
    service.machine.modules.loaded = False
    service.start()
    message, hint = service.run(public, "touch", str(public / "mark"))
    assert (message, "modprobe" in hint) == ("the kernel module is not loaded", True)
    assert not (public / "mark").exists()
    assert not list(public.glob(".nfsdb*"))


def test_it_ends_when_nobody_asks(service: Service) -> None:
    service.stop()
    service.start(idle_s=0.3)
    service.process.join(10)
    assert service.process.exitcode == 0


# ---- as if attacked


def test_a_slow_caller_is_cut_off(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.stop()
    monkeypatch.setattr(connection, "REQUEST_S", 1)
    service.start()
    with service.connected() as sock:
        sock.recv(1024)  # what it says to that, or nothing


def test_the_connections_of_a_user_are_bounded(service: Service) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(daemon.MAX_PER_USER):
            held.enter_context(service.connected())
        refused = service.ask(protocol.request(protocol.PROBE))
        assert refused is not None
        assert "too many connections" in refused["error"]
    until(lambda: service.ask(protocol.request(protocol.PROBE)) == {"works": True})


def test_a_refusal_arrives_when_the_request_comes_late(service: Service) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(daemon.MAX_PER_USER):
            held.enter_context(service.connected())
        late = held.enter_context(service.connected())
        assert select.select([late], [], [], LIMIT_S)[0]
        time.sleep(0.2)  # now etraced has closed it
        refused = protocol.ask(late, protocol.request(protocol.PROBE))
    assert refused is not None
    assert "too many connections" in refused["error"]


def _socket_that_waits_when_it_is_closed() -> tuple[socket.socket, socket.socket]:
    """Return it, with bytes to send and an hour for that, and its peer, who reads none of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        waiting = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    waiting.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            waiting.send(bytes(65536))
    waiting.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return waiting, peer


def test_a_refused_caller_cannot_keep_the_service_waiting(service: Service) -> None:
    pid = service.process.pid
    assert pid is not None
    with contextlib.ExitStack() as held:
        for _ in range(daemon.MAX_PER_USER):
            held.enter_context(service.connected())
        until(lambda: "too many" in str(service.ask(protocol.request(protocol.PROBE))))
        waiting, peer = _socket_that_waits_when_it_is_closed()
        held.enter_context(peer)
        os.kill(pid, signal.SIGSTOP)
        with service.connected() as hostile, waiting:
            socket.send_fds(hostile, [b"{}"], [waiting.fileno()])
        # the service has the last one now
        os.kill(pid, signal.SIGCONT)
        refused = service.ask(protocol.request(protocol.PROBE))
    assert refused is not None
    assert "too many connections" in refused["error"]


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"etraced": 2, "do": "probe"},
        {"etraced": 1, "do": "shutdown"},
        {"etraced": 1, "do": "stop"},
        {"etraced": 1, "do": "trace"},
        {"etraced": 1, "do": "probe", "module": "/tmp/evil.ko"},
        {"etraced": 1, "do": "probe", "options": ["isolate"]},
        {"etraced": 1, "do": "probe", "options": "env"},
        {"etraced": 1, "do": ["probe"]},
    ],
)
def test_what_is_not_a_request_is_refused(service: Service, message: dict[str, object]) -> None:
    reply = service.ask(message)
    assert reply is not None
    assert "error" in reply


@pytest.mark.parametrize("data", [b"{", b"[" * 900, b"[]", b"\xff\xfe", b"{" + b" " * 2000 + b"}"])
def test_bytes_that_are_not_a_message_are_refused(service: Service, data: bytes) -> None:
    with service.connected() as sock:
        sock.send(data)
        reply, _ = protocol.receive(sock, protocol.MAX_REPLY_BYTES)
    assert reply is not None
    assert "error" in reply


def test_descriptors_of_root_are_not_traced_for_a_user(service: Service, public: Path) -> None:
    """The file is root's, as if a set-uid program had been made to pass it on."""
    with (public / "file").open("w+b") as file:
        pidfd = os.pidfd_open(os.getpid())
        reply = service.ask(protocol.request(protocol.TRACE), (file.fileno(), pidfd))
        os.close(pidfd)
    assert reply is not None
    assert "the process" in reply["error"]  # it has threads, or is not a child: the caller itself
    assert service.machine.changes() == CLEAN
