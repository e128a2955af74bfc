# SPDX-License-Identifier: Apache-2.0
"""Who may ask: whoever has the token, by a name of this server.

Any user of the machine can connect to a port of localhost, and any page that a browser shows can
make it ask. So every question needs the token, and the `Host` that the server was given: a foreign
name that resolves to 127.0.0.1 is refused. There is no cookie, since a browser sends those of
localhost to every port: the page keeps the token for its own origin and sends it as a header.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Access:
    """The token and the names of the server; `hosts` are without a port."""

    hosts: frozenset[str]
    token: str = field(default_factory=secrets.token_urlsafe)

    def knows_host(self, host: str) -> bool:
        """Tell whether a request's Host header names this server."""
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdigit() else host).lower() in self.hosts

    def allows(self, authorization: str) -> bool:
        """Tell whether a request's Authorization header has the token, as `Bearer TOKEN`."""
        scheme, _, token = authorization.partition(" ")
        is_ours = hmac.compare_digest(token.encode(errors="replace"), self.token.encode())
        return is_ours and scheme.lower() == "bearer"


def hosts_of(address: str) -> frozenset[str]:
    """Return the names by which a server at this address is asked."""
    shown = f"[{address}]" if ":" in address else address
    return frozenset((*LOCAL, shown.lower()))
