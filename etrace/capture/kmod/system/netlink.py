# SPDX-License-Identifier: Apache-2.0
"""The module's control over generic netlink, with pyroute2 (imported late, because it is slow).

Message layout: kmod/include/etrace/control.h; generic netlink: Documentation/userspace-api/netlink.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any

from etrace.capture.kmod.system import presence
from etrace.capture.kmod.system.control import (
    FAMILY,
    VERSION,
    Attribute,
    Command,
    Counter,
    Option,
    Phase,
    Request,
    Started,
    Status,
)
from etrace.errors import CaptureError

PREFIX = "ETRACE_ATTR_"
TYPES = {
    Attribute.UNSPEC: "none",
    Attribute.PAD: "none",
    Attribute.CGROUP: "asciiz",
    Attribute.INSTANCE: "asciiz",
    Attribute.MISSING_PROBE: "asciiz",
    Attribute.ROOT_UPID: "uint64",
    Attribute.STARTED_NS: "uint64",
    Attribute.COUNTERS: "counters",
}  # all others are u32

OTHER_VERSION = "another version of it may be loaded: sudo rmmod etrace, and start again"
REASONS = {
    errno.EBUSY: (
        "a session is already running",
        "see `etrace status`; if none runs, leave out --isolate",
    ),
    errno.EINVAL: ("the module does not understand the request", OTHER_VERSION),
    errno.EPERM: (
        "the kernel did not permit it",
        "it needs root (CAP_SYS_ADMIN) outside of any container",
    ),
    errno.ESRCH: ("there is no such process", "give the number of a process that runs: --pid PID"),
    errno.ENOENT: ("there is no such cgroup", "give a path below /sys/fs/cgroup: --cgroup PATH"),
    errno.ENOMEM: ("the kernel is out of memory", "give smaller buffers: --buffer-size KIB"),
    errno.EOPNOTSUPP: (
        "this kernel cannot do what was asked",
        "leave out --isolate and --cgroup, and see `etrace doctor`",
    ),
}


def message_class() -> type[Any]:
    """Make pyroute2's description of a message of the family."""
    from pyroute2.netlink import genlmsg, nla  # noqa: PLC0415  slow to import

    class Counters(nla):  # type: ignore[misc]  # pyroute2 has no types
        nla_map = (
            ("ETRACE_COUNT_PAD", "none"),
            *((f"ETRACE_COUNT_{c.name}", "uint64") for c in Counter),
        )

    class Message(genlmsg):  # type: ignore[misc]
        prefix = PREFIX
        nla_map = tuple((PREFIX + a.name, TYPES.get(a, "uint32")) for a in Attribute)
        counters = Counters

    return Message


def refusal(code: int, what: str, said: str = "") -> CaptureError:
    """Return the error of a request that the kernel refused with `code`, saying `said`."""
    reason, hint = REASONS.get(code, (os.strerror(code), "`etrace doctor` and dmesg may show more"))
    return CaptureError(f"{what}: {said or reason}", hint)


def _attribute(reply: Any, attribute: Attribute) -> int:
    value = reply.get_attr(PREFIX + attribute.name)
    return 0 if value is None else int(value)


def _counters(nested: Any) -> dict[Counter, int]:
    if nested is None:
        return {}
    values = {c: nested.get_attr(f"ETRACE_COUNT_{c.name}") for c in Counter}
    return {counter: int(value) for counter, value in values.items() if value is not None}


def _missing_probes(reply: Any) -> tuple[str, ...]:
    return tuple(v for name, v in reply["attrs"] if name == PREFIX + "MISSING_PROBE")


def parse_status(reply: Any) -> Status:
    """Read the attributes of a reply to STATUS or STOP."""
    phase = _attribute(reply, Attribute.STATE)
    if phase not in list(Phase):
        raise CaptureError(f"the module reports state {phase}, which is unknown", OTHER_VERSION)
    return Status(
        phase=Phase(phase),
        session=_attribute(reply, Attribute.SESSION),
        root_pid=_attribute(reply, Attribute.ROOT_PID),
        owner_pid=_attribute(reply, Attribute.OWNER_PID),
        started_ns=_attribute(reply, Attribute.STARTED_NS),
        options=Option(_attribute(reply, Attribute.OPTIONS)),
        counters=_counters(reply.get_attr(PREFIX + "COUNTERS")),
        missing_probes=_missing_probes(reply),
    )


def _unreachable() -> CaptureError:
    """Return why there is no such family here: generic netlink shows it in one namespace only."""
    if not presence.is_loaded():
        return CaptureError("the kernel module etrace is not loaded", "load it: sudo etrace start")
    return CaptureError(
        "the kernel module etrace is loaded, but only the machine's first network namespace "
        "reaches it, and this is another one",
        "run it there: sudo nsenter --net=/proc/1/ns/net etrace ...; inside a container, on its "
        "host",
    )


class NetlinkControl:
    """`Control` over a socket of the family; CaptureError when the module is not there."""

    def __init__(self) -> None:
        from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415  slow to import
        from pyroute2.netlink.generic import GenericNetlinkSocket  # noqa: PLC0415

        self._refused = NetlinkError
        self._message = message_class()
        try:
            self._socket = GenericNetlinkSocket(ext_ack=True)
        except OSError as error:
            raise CaptureError(
                f"no netlink socket: {error.strerror}", "does a container's profile forbid it?"
            ) from error
        # a missing family is reported below, not logged; since 0.9 the core is an object of its own
        getattr(self._socket, "asyncore", self._socket).module_err_level = "debug"
        try:
            self._socket.bind(FAMILY, self._message)
        except NetlinkError as error:
            self._socket.close()
            raise _unreachable() from error

    def _request(
        self, command: Command, attributes: Iterable[tuple[Attribute, int | str]], what: str
    ) -> list[Any]:
        from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST  # noqa: PLC0415  slow to import

        message = self._message()
        message["cmd"] = command
        message["version"] = VERSION
        message["attrs"] = [(PREFIX + a.name, value) for a, value in attributes]
        try:
            return list(
                self._socket.nlm_request(
                    message, msg_type=self._socket.prid, msg_flags=NLM_F_REQUEST | NLM_F_ACK
                )
            )
        except self._refused as error:
            said = error.args[-1]  # NLMSGERR_ATTR_MSG; what errno means when the kernel sent none
            given = said if said != os.strerror(error.code) else ""
            raise refusal(error.code, what, str(given)) from error
        except OSError as error:
            raise CaptureError(f"{what}: netlink: {error.strerror}", "try again") from error

    def _one(
        self, command: Command, attributes: Iterable[tuple[Attribute, int | str]], what: str
    ) -> Any:
        for reply in self._request(command, attributes, what):
            if reply.get("cmd") == command:
                return reply
        raise CaptureError(f"{what}: the module gave no answer", OTHER_VERSION)

    def start(self, request: Request) -> Started:
        """See Control.start."""
        root: tuple[Attribute, int | str] = (
            (Attribute.CGROUP, request.cgroup)
            if request.cgroup
            else (Attribute.ROOT_PID, request.root_pid)
        )
        attributes = (
            root,
            (Attribute.OPTIONS, int(request.options)),
            (Attribute.INSTANCE, request.instance),
        )
        reply = self._one(Command.START, attributes, "cannot start the session")
        return Started(_attribute(reply, Attribute.SESSION), _missing_probes(reply))

    def stop(self, session: int) -> Status:
        """See Control.stop."""
        attributes = ((Attribute.SESSION, session),)
        return parse_status(self._one(Command.STOP, attributes, "cannot stop the session"))

    def status(self) -> Status:
        """See Control.status."""
        return parse_status(self._one(Command.STATUS, (), "cannot ask the kernel module"))

    def fileno(self) -> int:
        """See Control.fileno."""
        return int(self._socket.fileno())

    def close(self) -> None:
        """See Control.close."""
        self._socket.close()
