# SPDX-License-Identifier: Apache-2.0
"""Connections that say nothing, little, or read nothing: all are cut, and keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from backends import need_root
from serve.asking import PROGRAM, Server

from etrace.capture.peer import user_of
from etrace.cli.serve import connections
from etrace.cli.serve.connections import Access, Connection, Crowd, hosts_of

HASTY = f"from etrace.cli.serve import connections as c; c.LIFE_S = c.LOOK_S = 1; {PROGRAM}"
BRIEF = f"from etrace.cli.serve import connections as c; c.LIFE_S = 1; {PROGRAM}"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
NOBODY = 65534


@pytest.fixture(scope="module")
def hasty(database: Path) -> Iterator[Server]:
    """A server with short times."""
    made = Server(database, program=HASTY)
    yield made
    made.end()


@pytest.fixture
def brief(database: Path) -> Iterator[Server]:
    """A server that has little time for strangers alone."""
    made = Server(database, program=BRIEF)
    yield made
    made.end()


@contextlib.contextmanager
def connected(server: Server, n: int = 1) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
            for _ in range(n)
        ]


def ended(sock: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def test_who_has_the_token_is_answered_beside_any_number_of_silent_ones(server: Server) -> None:
    with connected(server, 200):
        for _ in range(3):
            assert server.query("commands").status == 200


def test_a_silent_connection_is_cut(hasty: Server) -> None:
    with connected(hasty, 3) as silent:
        assert [ended(sock) for sock in silent] == [b""] * 3


@pytest.mark.parametrize("begun", [b"", GET + GET[:4]], ids=["at once", "after a request"])
def test_a_byte_now_and_then_does_not_keep_a_connection(hasty: Server, begun: bytes) -> None:
    with connected(hasty) as (slow,):
        slow.sendall(begun + b"GET / HTTP/1.1\r\nX: ")
        with contextlib.suppress(ConnectionError):
            while True:
                slow.sendall(b"x")
                if select.select([slow], [], [], 0.02)[0] and not slow.recv(1 << 16):
                    break


def test_a_connection_with_the_token_is_cut_when_it_stays_idle(hasty: Server) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {hasty.token}\r\n\r\n"
    with connected(hasty) as (idle,):
        idle.sendall(b"GET /api/v1/databases HTTP/1.1\r\n" + head.encode())
        idle.sendall(b"GET / HTTP/1.1\r\nX: ")  # uvicorn's own limit is over then
        assert b"source_root" in ended(idle)


def test_a_connection_with_the_token_lasts_longer_than_a_strangers(brief: Server) -> None:
    """Each request begins its time again: more of them than fit into a stranger's life."""
    asked = brief.connected()
    with connected(brief) as (stranger,):
        while not select.select([stranger], [], [], 0.05)[0]:
            asked.request(
                "GET", "/api/v1/databases", headers={"Authorization": f"Bearer {brief.token}"}
            )
            assert asked.getresponse().read()
            local = asked.sock.getsockname() if asked.sock else None
        asked.request(
            "GET", "/api/v1/databases", headers={"Authorization": f"Bearer {brief.token}"}
        )
        assert asked.getresponse().status == 200
        assert asked.sock is None or asked.sock.getsockname() == local
    asked.close()


@contextlib.contextmanager
def held_by_another_user(port: int, n: int) -> Iterator[None]:
    """Keep connections of a user without rights open."""
    said, say = os.pipe()
    wait, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(n)]
        os.write(say, b"%d" % len(held))
        os.read(wait, 1)
        os._exit(0)
    os.close(say)
    os.close(wait)
    assert os.read(said, 9) == b"%d" % n
    yield
    os.close(end)
    os.waitpid(pid, 0)
    os.close(said)


@pytest.mark.root
def test_a_crowd_of_one_user_does_not_cut_off_another(server: Server) -> None:
    need_root()
    with connected(server) as (mine,), held_by_another_user(server.port, 150):
        mine.sendall(GET)
        assert mine.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert server.query("commands").status == 200


def test_the_user_at_the_other_end_is_known() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as listener:
            listener.bind((host, 0))
            listener.listen()
            with socket.create_connection(listener.getsockname()[:2]) as client:
                ends = client.getsockname()[:2], client.getpeername()[:2]
                assert user_of(*ends) == os.geteuid()
            assert user_of(*ends) is None  # closed
    assert user_of(("192.0.2.1", 4000), ("127.0.0.1", 8420)) is None


class Unread(Connection):
    """A connection that says when it is lost."""

    lost = threading.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


def test_who_does_not_read_an_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOOK_S", 0.5)
    access, size = Access(hosts_of("127.0.0.1")), 64 << 20

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    listener = socket.create_server(("127.0.0.1", 0))
    kind: Any = partial(Unread, access=access, crowd=Crowd())
    running = uvicorn.Server(uvicorn.Config(app, http=kind, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(running.serve(sockets=[listener])))
    thread.start()
    with socket.create_connection(listener.getsockname()) as unread:
        unread.sendall(GET[:-2] + f"Authorization: Bearer {access.token}\r\n\r\n".encode())
        assert Unread.lost.wait(60)
        assert len(ended(unread)) < size
    running.should_exit = True
    thread.join()


def test_a_stranger_does_not_delay_the_end_of_the_server(database: Path) -> None:
    made = Server(database)
    with connected(made) as (silent,):
        silent.sendall(GET)
        assert silent.recv(1)
        silent.sendall(GET[:9])
        made.end()


def test_one_user_may_ask_many_questions_at_once(server: Server) -> None:
    head = f"Host: localhost\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n"
    with connected(server, 32) as many:  # all connect before any of them speaks
        for sock in many:
            sock.sendall(b"GET /api/v1/databases HTTP/1.1\r\n" + head.encode())
        assert all(ended(sock).startswith(b"HTTP/1.1 200 ") for sock in many)
