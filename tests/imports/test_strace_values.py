# SPDX-License-Identifier: Apache-2.0
"""Arguments of calls as strace shows them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etrace.imports.strace import values
from etrace.imports.strace.values import AT_FDCWD, Descriptor, Text


def octal(text: bytes) -> bytes:
    """Escape as strace does: a short octal number where no digit follows."""
    out = b""
    for i, byte in enumerate(text):
        char = bytes([byte])
        if 32 <= byte < 127 and char not in b'"\\':
            out += char
        elif char in b'"\\':
            out += b"\\" + char
        else:
            is_short = not text[i + 1 : i + 2].isdigit()
            out += b"\\%o" % byte if is_short else b"\\%03o" % byte
    return out


@settings(deadline=None)
@given(st.binary())
def test_escapes_come_back(text: bytes) -> None:
    assert values.string(b'"' + octal(text) + b'"') == Text(text)
    hexadecimal = b"".join(b"\\x%02x" % byte for byte in text)
    assert values.string(b'"' + hexadecimal + b'"...') == Text(text, is_cut=True)


def test_short_escapes() -> None:
    assert values.string(rb'"\n\t\r\v\f\"\\\33[0m\1771"') == Text(b'\n\t\r\v\f"\\\x1b[0m\x7f1')


@settings(deadline=None)
@given(st.lists(st.binary(max_size=8), max_size=5))
def test_a_list_of_strings_with_anything_in_it(items: list[bytes]) -> None:
    shown = b", ".join(b'"' + octal(item) + b'"' for item in items)
    assert values.strings(b"[" + shown + b"]") == [Text(item) for item in items]
    words = values.arguments(b'"/bin/a", [' + shown + b"], 0x7ffe /* 35 vars */")
    assert words[1:] == [b"[" + shown + b"]", b"0x7ffe /* 35 vars */"]


def test_arguments_keep_what_is_nested() -> None:
    text = b"{flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f} => {parent_tid=[12]}, 88"
    assert values.arguments(text)[1] == b"88"
    assert values.arguments(b'3</a,b<char 1:3>>, "c,d", [4</e,f>, 5]') == [
        b"3</a,b<char 1:3>>",
        b'"c,d"',
        b"[4</e,f>, 5]",
    ]
    assert values.arguments(b'"not closed, 3') == [b'"not closed, 3']


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"O_RDONLY|O_CLOEXEC", 0o2000000),
        (b"0x80000", 0x80000),
        (b"0x241 /* O_WRONLY|O_CREAT|O_TRUNC */", 0x241),
        (b"0666", 0o666),
        (b"0", 0),
        (b"CLONE_VM|CLONE_VFORK|SIGCHLD", 0x4111),
        (b"0x1200000|17", 0x1200011),
        (b"F_DUPFD_CLOEXEC", 1030),
        (b"O_WHATEVER", None),
        (b"", None),
        (b"0" * 9000, 0),
        (b"9" * 9000, None),
    ],
)
def test_numbers_and_flags(text: bytes, number: int | None) -> None:
    assert values.number(text) == number


@pytest.mark.parametrize(
    ("text", "descriptor"),
    [
        (b"3", Descriptor(3)),
        (b"-1", Descriptor(-1)),
        (b"AT_FDCWD", Descriptor(AT_FDCWD)),
        (b"-100", Descriptor(AT_FDCWD)),
        (b"-100 /* AT_FDCWD */</w>", Descriptor(AT_FDCWD, b"/w")),
        (b"AT_FDCWD<\\x2f\\x77>", Descriptor(AT_FDCWD, b"/w")),
        (b"3</a\\74\\76\\303\\251>", Descriptor(3, b"/a<>\xc3\xa9")),
        (b"3</dev/null<char 1:3>>", Descriptor(3, b"/dev/null")),
        (b"3</a (deleted)>", Descriptor(3, b"/a (deleted)")),
        (b"3<pipe:[15129358]>", Descriptor(3, b"pipe:[15129358]")),
        (b"NULL", None),
    ],
)
def test_descriptors(text: bytes, descriptor: Descriptor | None) -> None:
    assert values.descriptor(text) == descriptor
