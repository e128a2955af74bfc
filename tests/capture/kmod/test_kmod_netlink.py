# SPDX-License-Identifier: Apache-2.0
"""Messages to and from the module as pyroute2 writes and reads them, byte for byte."""

from __future__ import annotations

import errno
import re
import struct
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from etrace.capture.kmod.system import control, netlink, presence
from etrace.capture.kmod.system.control import Attribute, Command, Counter, Phase
from etrace.errors import CaptureError

NLA_HEADER = 4
NESTED = 0x8000


def attribute(kind: int, payload: bytes) -> bytes:
    raw = struct.pack("HH", NLA_HEADER + len(payload), kind) + payload
    return raw + b"\0" * (-len(raw) % 4)


def message(command: Command, attributes: bytes) -> Any:
    """A message as the kernel sends it: netlink header, generic header, attributes."""
    body = struct.pack("BBH", command, 1, 0) + attributes
    raw = struct.pack("IHHII", 16 + len(body), 0x20, 0, 0, 0) + body
    decoded = netlink.message_class()(raw)
    decoded.decode()
    return decoded


def u32(kind: Attribute, value: int) -> bytes:
    return attribute(kind, struct.pack("I", value))


def test_a_reply_of_status_is_read() -> None:
    counters = b"".join(
        attribute(counter + 1, struct.pack("Q", 1000 + counter)) for counter in Counter
    )
    reply = message(
        Command.STATUS,
        u32(Attribute.STATE, Phase.RUNNING)
        + u32(Attribute.SESSION, 3)
        + u32(Attribute.ROOT_PID, 77)
        + u32(Attribute.OWNER_PID, 78)
        + attribute(Attribute.STARTED_NS, struct.pack("Q", 1 << 40))
        + attribute(Attribute.COUNTERS | NESTED, counters)
        + attribute(Attribute.MISSING_PROBE, b"security_path_link\0")
        + attribute(Attribute.MISSING_PROBE, b"security_sb_mount\0"),
    )
    status = netlink.parse_status(reply)
    assert (status.phase, status.session, status.root_pid) == (Phase.RUNNING, 3, 77)
    assert (status.owner_pid, status.started_ns) == (78, 1 << 40)
    assert status.counters == {counter: 1000 + counter for counter in Counter}
    assert status.missing_probes == ("security_path_link", "security_sb_mount")


def test_counters_of_an_older_module_are_zero() -> None:
    counters = attribute(Counter.EVENTS + 1, struct.pack("Q", 5))
    reply = message(Command.STATUS, attribute(Attribute.COUNTERS, counters))
    status = netlink.parse_status(reply)
    assert (status.count(Counter.EVENTS), status.count(Counter.LOST_EVENTS)) == (5, 0)
    assert status.phase is Phase.IDLE


def test_padding_of_64_bit_attributes_is_passed_over() -> None:
    reply = message(
        Command.STATUS,
        attribute(Attribute.PAD, b"")
        + attribute(Attribute.STARTED_NS, struct.pack("Q", 9))
        + attribute(Attribute.COUNTERS, attribute(0, b"") + attribute(1, struct.pack("Q", 4))),
    )
    status = netlink.parse_status(reply)
    assert (status.started_ns, status.count(Counter.EVENTS)) == (9, 4)


def test_a_state_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(CaptureError, match="state 9"):
        netlink.parse_status(message(Command.STATUS, u32(Attribute.STATE, 9)))


def test_a_request_is_what_the_header_says() -> None:
    made = netlink.message_class()()
    made["cmd"], made["version"] = Command.START, 1
    made["attrs"] = [("ETRACE_ATTR_ROOT_PID", 42), ("ETRACE_ATTR_INSTANCE", "etrace")]
    made.encode()
    body = bytes(made.data[20:])
    assert body == u32(Attribute.ROOT_PID, 42) + attribute(Attribute.INSTANCE, b"etrace\0")


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EPERM, errno.ESRCH, errno.EXDEV])
def test_every_refusal_has_a_reason_and_a_hint(code: int) -> None:
    error = netlink.refusal(code, "cannot start the session")
    assert error.message.startswith("cannot start the session: ")
    assert error.hint


def test_an_older_module_that_refuses_an_option_is_to_be_loaded_again() -> None:
    said = "OPTIONS has a bit that this module does not know"
    error = netlink.refusal(errno.EINVAL, "cannot start the session", said)
    assert error.message == f"cannot start the session: {said}"
    assert "sudo rmmod etrace" in (error.hint or "")


def test_a_missing_family_is_an_error_with_a_hint(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CaptureError, match="not loaded"):
        netlink.NetlinkControl()
    assert capfd.readouterr().err == ""


def test_a_loaded_module_that_is_out_of_reach_is_said_to_be_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as in another network namespace: the family is not there, the module is
    monkeypatch.setattr(presence, "is_loaded", lambda: True)
    with pytest.raises(CaptureError, match="is loaded, but only the machine") as error:
        netlink.NetlinkControl()
    assert "nsenter --net=/proc/1/ns/net etrace" in error.value.hint


def test_a_request_reaches_the_kernel() -> None:
    # nlctrl is a family of every kernel; its answer to an unknown command shows the way back
    control = netlink.NetlinkControl.__new__(netlink.NetlinkControl)
    from pyroute2.netlink.exceptions import NetlinkError
    from pyroute2.netlink.generic import GenericNetlinkSocket

    control._refused, control._message = NetlinkError, netlink.message_class()
    control._socket = GenericNetlinkSocket()
    control._socket.bind("nlctrl", control._message)
    assert control.fileno() > 2
    with pytest.raises(CaptureError, match="cannot stop the session: this kernel cannot do"):
        control.stop(1)
    control.close()


# ---- the numbers are those of the C header

HEADER = Path(__file__).parents[3] / "kmod/include/etrace/control.h"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def header() -> str:
    return COMMENT.sub("", HEADER.read_text())


def enum(name: str, prefix: str) -> dict[str, int]:
    """Constants of a C enum; a line without a value counts up."""
    body = re.search(rf"enum {name} {{(.*?)}};", header(), re.DOTALL)
    assert body, name
    found, value = {}, 0
    for entry in filter(None, (line.strip() for line in body[1].split(","))):
        key, _, given = entry.partition("=")
        value = int(given) if given else value
        found[key.strip().removeprefix(prefix)] = value
        value += 1
    return found


@pytest.mark.parametrize(
    ("python", "c_name", "prefix", "end"),
    [
        (Command, "etrace_command", "ETRACE_CMD_", ""),
        (Attribute, "etrace_attribute", "ETRACE_ATTR_", "ETRACE_N_ATTRIBUTES"),
        (Phase, "etrace_state", "ETRACE_STATE_", "ETRACE_N_STATES"),
        (Counter, "etrace_counter", "ETRACE_COUNT_", "ETRACE_N_COUNTERS"),
    ],
)
def test_enums_are_those_of_the_header(
    python: type[IntEnum], c_name: str, prefix: str, end: str
) -> None:
    found = enum(c_name, prefix)
    if end:
        assert found.pop(end.removeprefix(prefix)) == len(python)
    assert found == {member.name: member.value for member in python}


def test_option_bits_are_those_of_the_header() -> None:
    bits = dict(re.findall(r"#define ETRACE_OPTION_(\w+) (0x\w+)", header()))
    assert {name: int(value, 16) for name, value in bits.items()} == {
        option.name: option.value for option in control.Option
    }
    (everything,) = re.findall(r"#define ETRACE_OPTIONS_ALL (0x\w+)", header())
    assert int(everything, 16) == sum(control.Option)


def test_names_are_those_of_the_header() -> None:
    strings = dict(re.findall(r'#define (ETRACE_\w+) "(.*?)"', header()))
    assert strings["ETRACE_GENL_NAME"] == control.FAMILY
    assert strings["ETRACE_INSTANCE_DEFAULT"] == control.INSTANCE
    (version,) = re.findall(r"#define ETRACE_GENL_VERSION (\d+)", header())
    assert int(version) == control.VERSION
