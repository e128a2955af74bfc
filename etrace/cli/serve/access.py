# SPDX-License-Identifier: Apache-2.0
"""Who may ask: whoever has the token, by a name of this server.

Any user of the machine can connect to a port of localhost, and any page that a browser shows can
make it ask. So every request needs the token, and the `Host` that the server was given: a foreign
name that resolves to 127.0.0.1 is refused.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

COOKIE = "etrace-token"
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

    def allows(self, authorization: str, cookies: Mapping[str, str], query: str) -> bool:
        """Tell whether a request has the token: as Bearer, in the cookie, or in its address."""
        scheme, _, bearer = authorization.partition(" ")
        offered = (bearer if scheme.lower() == "bearer" else "", cookies.get(COOKIE, ""), query)
        return any(self._is_token(each) for each in offered)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self.token.encode())


def hosts_of(address: str) -> frozenset[str]:
    """Return the names by which a server at this address is asked."""
    shown = f"[{address}]" if ":" in address else address
    return frozenset((*LOCAL, shown.lower()))
