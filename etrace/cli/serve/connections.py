# SPDX-License-Identifier: Apache-2.0
"""Who may ask: whoever has the token, by a name of this server.

Any user of the machine can connect to a port of localhost, and any page that a browser shows can
make it ask. So every question needs the token, and the `Host` that the server was given: a foreign
name that resolves to 127.0.0.1 is refused. There is no cookie, since a browser sends those of
localhost to every port: the page keeps the token for its own origin and sends it as a header.

How long a connection may last, and how many there are: no limit of uvicorn holds before a head.

Whoever can reach the port can connect. A *stranger* is a connection that has not shown the token:
it is cut after LIFE_S, whatever it sends or reads; there are at most N_STRANGERS, and the oldest of
the user or address that has most of them makes room for a new one. So whoever sends the token with
a first request gets in, and is not counted as a stranger from then on.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from etrace.capture.peer import host_of, user_of

LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Access:
    """The token and the names of the server; `hosts` are without a port."""

    hosts: frozenset[str]
    token: str = field(default_factory=secrets.token_urlsafe)

    def knows_host(self, host: str) -> bool:
        """Return whether a request's Host header names this server."""
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdigit() else host).lower() in self.hosts

    def allows(self, authorization: str) -> bool:
        """Return whether a request's Authorization header has the token, as `Bearer TOKEN`."""
        scheme, _, token = authorization.partition(" ")
        is_ours = hmac.compare_digest(token.encode(errors="replace"), self.token.encode())
        return is_ours and scheme.lower() == "bearer"


def hosts_of(address: str) -> frozenset[str]:
    """Return the names by which a server at this address is asked."""
    shown = f"[{address}]" if ":" in address else address
    return frozenset((*LOCAL, shown.lower()))


LIFE_S = 10.0
N_STRANGERS = 64
#: of one who has shown the token: how often it is looked at, and what it must have read by then
LOOK_S, LOOK_BYTES = 10.0, 160 << 10
N_CONNECTIONS = 192  #: of all kinds; more are answered with 503
BACKLOG = 64  #: accepted at a time


class Crowd:
    """The strangers, the oldest first, and whose they are."""

    def __init__(self) -> None:
        self._strangers: dict[Connection, Hashable] = {}

    def enter(self, connection: Connection, whose: Hashable) -> None:
        """Take in a connection; it has the place of the oldest where there are too many."""
        if len(self._strangers) >= N_STRANGERS:
            self._cut_oldest(Counter(self._strangers.values()).most_common(1)[0][0])
        self._strangers[connection] = whose

    def leave(self, connection: Connection) -> None:
        """Forget a connection that has ended or shown the token."""
        self._strangers.pop(connection, None)

    def _cut_oldest(self, whose: Hashable) -> None:
        oldest = next(each for each, owner in self._strangers.items() if owner == whose)
        self.leave(oldest)
        oldest.cut()


class Connection(H11Protocol):
    """A connection with its limits; see the head of this module."""

    def __init__(self, *args: Any, access: Access, crowd: Crowd, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._access, self._crowd = access, crowd
        self._is_known = False
        self._unread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._routes, self.app = self.app, self._answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the time of a stranger."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(LIFE_S, self.cut)
        self._crowd.enter(self, _owner(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """End all timers."""
        self._stop_timer()
        self._crowd.leave(self)
        super().connection_lost(exc)

    def cut(self) -> None:
        """Close the connection, and forget what it has not read."""
        self._stop_timer()
        self.transport.abort()

    def shutdown(self) -> None:
        """End with the server; a stranger cannot delay that."""
        if self._is_known:
            super().shutdown()
        else:
            self.cut()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; the time for the next one, and for reading the answer, begins then."""
        given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        if not self._is_known and self._access.allows(given):
            self._is_known = True
            self._crowd.leave(self)
        if self._is_known:
            self._stop_timer()
        try:
            await self._routes(scope, receive, send)
        finally:
            if self._is_known:
                self._look_later()

    def _look_later(self) -> None:
        self._stop_timer()
        self._unread = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Cut who has read too little of an answer, or sent no whole request after it."""
        now = self.transport.get_write_buffer_size()
        if self._unread and now <= max(0, self._unread - LOOK_BYTES):
            self._look_later()
        else:
            self.cut()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _owner(transport: asyncio.Transport) -> Hashable:
    """Return who has connected: a user of this machine, else an address (of IPv6 its network)."""
    peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not peer or not here:  # it has gone already
        return None
    user = user_of(peer[:2], here[:2])
    if user is not None:
        return user
    host = host_of(peer[0])
    return host.packed[:8] if host.version == 6 else host.packed
