# SPDX-License-Identifier: Apache-2.0
"""Messages of etraced: what is too long or has too much is refused, and leaves nothing open."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from etrace.capture.kmod.system.control import Option
from etrace.capture.remote import protocol
from etrace.capture.remote.protocol import ProtocolError, read_request, receive, request, send

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def n_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_request_arrives_with_its_descriptors(pair: Pair) -> None:
    send(pair[0], request(protocol.TRACE, ("env",)), (0, 1))
    raw, fds = receive(pair[1], protocol.MAX_REQUEST_BYTES, 2)
    assert raw is not None
    assert read_request(raw) == (protocol.TRACE, Option.ENVIRONMENT)
    assert [os.get_inheritable(fd) for fd in fds] == [False, False]
    protocol.close_all(fds)


def test_the_end_of_a_connection_is_not_a_message(pair: Pair) -> None:
    pair[0].close()
    assert receive(pair[1], 100) == (None, [])


@pytest.mark.parametrize("n_fds", [1, 3, 100])
@pytest.mark.parametrize("wanted", [0, 2])
def test_other_descriptors_are_closed(pair: Pair, n_fds: int, wanted: int) -> None:
    before = n_open()
    send(pair[0], request(protocol.TRACE), (0,) * n_fds)
    with pytest.raises(ProtocolError):
        receive(pair[1], protocol.MAX_REQUEST_BYTES, wanted)
    assert n_open() == before


def test_a_long_message_is_refused_and_its_descriptors_are_closed(pair: Pair) -> None:
    before = n_open()
    send(pair[0], {"x": "y" * protocol.MAX_REQUEST_BYTES}, (0, 1))
    with pytest.raises(ProtocolError, match="too much"):
        receive(pair[1], protocol.MAX_REQUEST_BYTES, 2)
    assert n_open() == before


def test_options_are_listed_words() -> None:
    raw = request(protocol.TRACE, ("env", "mounts", "thread-names", "usage"))
    wanted = Option.ENVIRONMENT | Option.MOUNTS | Option.THREAD_NAMES | Option.USAGE
    assert read_request(raw) == (protocol.TRACE, wanted)
    with pytest.raises(ProtocolError, match="unknown option"):
        read_request(request(protocol.TRACE, ("isolate",)))
