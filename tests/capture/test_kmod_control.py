# SPDX-License-Identifier: Apache-2.0
"""The numbers of the control interface are those of its C header."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest

from etrace.capture.kmod.system import control

HEADER = Path(__file__).parents[2] / "kmod/include/etrace/control.h"
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
        (control.Command, "etrace_command", "ETRACE_CMD_", ""),
        (control.Attribute, "etrace_attribute", "ETRACE_ATTR_", "ETRACE_N_ATTRIBUTES"),
        (control.Phase, "etrace_state", "ETRACE_STATE_", "ETRACE_N_STATES"),
        (control.Counter, "etrace_counter", "ETRACE_COUNT_", "ETRACE_N_COUNTERS"),
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
