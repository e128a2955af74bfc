# SPDX-License-Identifier: Apache-2.0
"""A TCP connection -> the user of this machine who made it: sock_diag(7).

The kernel finds one socket by its addresses at once; /proc/net/tcp would list all of them.
"""

from __future__ import annotations

import ipaddress
import socket
import struct

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
HEADER = struct.Struct("=IHHII")
#: inet_diag_req_v2: family, protocol, states; ports, addresses; interface, no cookie
REQUEST = struct.Struct("=BBxxI")
ADDRESSES = struct.Struct(">HH16s16s")
REST = struct.Struct("=III")
#: of inet_diag_msg, after state and addresses: expiry, both queues, user, inode
FOUND = struct.Struct("=4x48xIIIII")
ANY = 0xFFFFFFFF
Address = tuple[str, int]


def host_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address as getpeername(2) names it; IPv4 in IPv6 is IPv4."""
    host = ipaddress.ip_address(address.partition("%")[0])
    return (host.ipv4_mapped or host) if isinstance(host, ipaddress.IPv6Address) else host


def user_of(client: Address, server: Address) -> int | None:
    """Return the user of the socket at the client's end; None when it is not of this machine."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
            netlink.send(_request(client, server))
            answer = netlink.recv(4096, socket.MSG_DONTWAIT)
    except (OSError, ValueError):  # none in a container, or a socket without an address
        return None
    if HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None
    *_, uid, inode = FOUND.unpack_from(answer, HEADER.size)
    return uid if inode else None  # without one it is closed, and nobody's


def _request(client: Address, server: Address) -> bytes:
    hosts = [host_of(client[0]), host_of(server[0])]
    family = socket.AF_INET if hosts[0].version == 4 else socket.AF_INET6
    body = (
        REQUEST.pack(family, socket.IPPROTO_TCP, ANY)
        + ADDRESSES.pack(client[1], server[1], *(host.packed for host in hosts))
        + REST.pack(0, ANY, ANY)
    )
    return HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + body
