# SPDX-License-Identifier: Apache-2.0
"""Who may ask, what a question may take, and what it may do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import databases
import pytest
from libetrace.image.file import Image
from serve.asking import Server
from trying import until

from etrace.cli.cas import program
from etrace.cli.serve import worker
from etrace.cli.serve.connections import Access, hosts_of
from etrace.cli.serve.endpoints import endpoints
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database

DATABASES = "/api/v1/databases"
LISTENS = "0A"  #: a state in /proc/net/tcp


# ---- who may ask


@pytest.mark.parametrize("address", [DATABASES, f"{DATABASES}/build/commands"])
def test_nothing_of_a_build_is_shown_without_the_token(server: Server, address: str) -> None:
    wrong = ("", "Bearer", "Bearer x", server.token, f"Basic {server.token}", "Bearer \xe9")
    for headers in ({}, *({"Authorization": each} for each in wrong)):
        answer = server.ask(address, headers)
        assert (answer.status, set(answer.value)) == (401, {"error", "hint"})
    assert server.ask(f"{address}?token={server.token}", {}).status == 401


def test_what_is_public_is_the_same_for_every_build(server: Server) -> None:
    names = ("", "page.js", "common.js", "report", "report.js", "report.css", "openapi.json")
    for address in (f"/{name}" for name in (*names, "fleet", "fleet.js", "fleet.css")):
        answer = server.ask(address, {})
        assert answer.status == 200
        assert "set-cookie" not in answer.headers
        assert b"/src" not in answer.body


def test_a_foreign_name_of_this_machine_is_refused(server: Server) -> None:
    bearer = {"Authorization": f"Bearer {server.token}"}
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        assert server.ask(DATABASES, {**bearer, "Host": host}).status == 421
    for host in ("localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8420"):
        assert server.ask(DATABASES, {**bearer, "Host": host}).status == 200


def test_names_of_a_server_that_others_reach() -> None:
    access = Access(hosts_of("2001:db8::1"))
    assert access.knows_host("[2001:DB8::1]:80")
    assert access.knows_host("[::1]")
    assert not access.knows_host("2001:db8::2")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    assert server.ask(DATABASES, method=method).status == 405


def test_each_response_forbids_inline_scripts_and_frames(server: Server) -> None:
    for address in ("/", "/openapi.json", DATABASES, "/nothing"):
        headers = server.ask(address).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_it_listens_here_only(server: Server) -> None:
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    ours = {each[1] for each in sockets if each[1].endswith(f":{server.port:04X}")}
    assert {each[1] for each in sockets if each[1] in ours and each[3] == LISTENS} == {
        f"0100007F:{server.port:04X}"
    }


# ---- what a question may take


@pytest.fixture
def held(database: Path) -> Iterator[Server]:
    """A server whose queries are held: their processes stop until they are killed."""
    made = Server(database, options=("--timeout", "2"))
    yield made
    made.end()


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return open_database(databases.write_database(tmp_path / "build"))


def ask(image: Image, words: list[str], limits: worker.Limits = worker.Limits()) -> bytes:  # noqa: B008
    return asyncio.run(worker.answer(worker.query(image, words), limits))


def replaced(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let a query do something else."""
    monkeypatch.setattr(program, "run_query", lambda *_: act() and 0)


def test_a_question_that_waits_is_ended(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, signal.pause)
    with pytest.raises(worker.TooLongError, match="no answer within 1 s"):
        ask(image, ["commands"], worker.Limits(seconds=1))
    assert children(os.getpid()) == [] or os.waitpid(-1, os.WNOHANG)


def test_a_question_that_takes_memory_is_ended(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    # more than the tests before it may have left free in this process's heap
    replaced(monkeypatch, lambda: [bytes(64 << 20) for _ in range(64)])
    with pytest.raises(EtraceError, match="not enough memory"):
        ask(image, ["commands"], worker.Limits(memory_bytes=16 << 20))


def test_an_answer_that_is_too_large_is_not_sent(image: Image) -> None:
    with pytest.raises(worker.TooLargeError, match="more than 100 bytes"):
        ask(image, ["commands"], worker.Limits(answer_bytes=100))


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (os.abort, worker.CrashedError, "crashed by SIGABRT"),
        (lambda: signal.raise_signal(signal.SIGKILL), worker.TooLongError, "short of memory"),
        (lambda: [0 for _ in iter(int, 1)], worker.TooLongError, "within 1 s of CPU time"),
    ],
)
def test_what_ended_a_query_is_reported(
    image: Image, monkeypatch: pytest.MonkeyPatch,
    act: Callable[[], object], error: type[EtraceError], said: str,
) -> None:  # fmt: skip
    replaced(monkeypatch, act)
    monkeypatch.setattr(asyncio, "timeout", lambda _seconds: contextlib.nullcontext())
    with pytest.raises(error, match=said):
        ask(image, ["commands"], worker.Limits(seconds=1))


def test_a_truncated_database_is_called_so(tmp_path: Path) -> None:
    where = databases.write_database(tmp_path / "build")
    server = Server(where)
    os.truncate(where / ".nfsdb.img", 64)
    answer = server.query("commands")
    server.end()
    assert (answer.status, answer.value["error"]) == (
        500, "the database was truncated, or its disk cannot be read"
    )  # fmt: skip


# ---- what it mentions its machine


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server of a build that has a configuration of its own but no products."""
    where = databases.write_parsed(tmp_path_factory.mktemp("secret") / "build")
    (where / ".bas_config").write_text('{"dependency_exclude_patterns": ["/src/util.o"]}')
    made = Server(where)
    yield made, where
    made.end()


def test_the_configuration_beside_a_database_is_used(configured: tuple[Server, Path]) -> None:
    answer = configured[0].query("deps", path="/src/libutil.a")
    assert (answer.status, answer.value["entries"]) == (200, ["/src/util.o"])


@pytest.mark.parametrize("query", sorted(endpoints()))
def test_no_answer_says_where_the_database_is(configured: tuple[Server, Path], query: str) -> None:
    server, where = configured
    for given in ({}, {"path": "/src/main.c"}, {"path": "x"}, {"filter": "[["}):
        answer = server.query(query, **given)
        assert str(where.parent).encode() not in answer.body
        assert b"/etrace/" not in answer.body


def test_an_error_of_a_file_does_not_name_it(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, (image.path.parent / "other").read_bytes)
    with pytest.raises(EtraceError, match="a query opens no files") as caught:
        ask(image, ["commands"])
    assert str(image.path.parent) not in caught.value.message + caught.value.hint


def test_who_leaves_ends_the_question(held: Server) -> None:
    connection = held.connected()
    headers = {"Authorization": f"Bearer {held.token}"}
    os.kill(held.process.pid, signal.SIGSTOP)
    connection.request("GET", f"{DATABASES}/build/commands", headers=headers)
    connection.close()
    os.kill(held.process.pid, signal.SIGCONT)
    until(lambda: not children(held.process.pid))
    assert held.query("commands").status == 200


# ---- what it may do


@pytest.mark.parametrize(
    "act",
    [
        lambda: open("/etc/passwd", "rb"),  # noqa: PTH123, SIM115
        lambda: open("/tmp/etrace-was-here", "wb"),  # noqa: PTH123, SIM115
        lambda: os.open("/etc", os.O_RDONLY),
        lambda: os.system("true"),
        os.fork,
        lambda: os.remove("/tmp/etrace-was-here"),  # noqa: PTH107
        lambda: socket.socket().connect(("127.0.0.1", 1)),
        lambda: os.kill(os.getppid(), 0),
    ],
)
def test_a_query_can_do_nothing_but_answer(
    image: Image, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> None:
    replaced(monkeypatch, act)
    with pytest.raises(EtraceError, match="a query"):
        ask(image, ["commands"])


def test_a_query_has_no_descriptor_of_the_server(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    def descriptors() -> object:
        found = []
        for fd in range(3, 200):
            with contextlib.suppress(OSError):
                os.fstat(fd)
                found.append(fd)
        print(found)
        return True

    replaced(monkeypatch, descriptors)
    assert ask(image, ["commands"]) == b"[]\n"
