# SPDX-License-Identifier: Apache-2.0
"""syscalls.toml against the kernel's own headers, and what is wrong in a table."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from etrace.errors import SpecError
from etrace.spec import syscalls

ROW = {"name": "openat", "numbers": [257, 295, 56, 322], "ptrace": "openat"}
#: the header of a table's numbers, and the compiler that has it
HEADERS = {
    "x86_64": ("gcc", "asm/unistd_64.h"),
    "x32": ("gcc", "asm/unistd_x32.h"),
    "i386": ("gcc", "asm/unistd_32.h"),
    "arm64": ("aarch64-linux-gnu-gcc", "asm/unistd.h"),
}
X32_BIT = 0x40000000


def headers(compiler: str, header: str) -> dict[str, int]:
    """Return the numbers that a header gives to calls."""
    listed = subprocess.run(
        [compiler, "-E", "-dM", "-x", "c", "-include", header, "/dev/null"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = dict(re.findall(r"#define __NR(?:3264)?_(\w+) (.+)", listed))
    numbers = {}
    for name, text in names.items():
        if found := re.fullmatch(r"(?:\(__X32_SYSCALL_BIT \+ )?(\d+)\)?", text):
            numbers[name] = int(found[1])
        elif found := re.fullmatch(r"__NR3264_(\w+)", text):  # arm64: fcntl is __NR3264_fcntl
            numbers[name] = int(names.get(found[1], "-1")) if names[found[1]].isdigit() else -1
    return numbers


@pytest.mark.parametrize("table", HEADERS)
def test_numbers_are_those_of_the_kernels_headers(table: str) -> None:
    known = headers(*HEADERS[table])
    compared = 0
    for call in syscalls.load().calls:
        number = call.x32 if table == "x32" else call.number(table)
        if known.get(call.name, -1) >= 0:
            assert (call.name, number) == (call.name, known[call.name])
            compared += 1
    assert compared > 30


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([ROW, {**ROW, "name": "open", "kind": "OPEN"}], "open: x86_64 has number 257 for openat"),
        ([{**ROW, "numbers": [257, 295, 56]}], "openat: numbers are those of x86_64"),
        ([{**ROW, "strace": "often"}], "openat: strace is one of always"),
        ([{**ROW, "ptarce": "openat"}], "openat: .*ptarce"),
        (
            [ROW, {"name": "open", "numbers": [2, 5, -1, 5], "kind": "OPENAT", "ptrace": "open"}],
            "open: ptrace differs from that of openat, of the same kind",
        ),
    ],
)
def test_a_wrong_table_is_refused(rows: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        syscalls.parse({"call": rows})


def test_every_call_of_a_backend_has_a_number_or_is_of_another_machine() -> None:
    for call in syscalls.load().of_ptrace():
        assert any(number != syscalls.NO_CALL for number in call.numbers), call.name
