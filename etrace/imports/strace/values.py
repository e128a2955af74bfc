# SPDX-License-Identifier: Apache-2.0
r"""Arguments of a call as strace shows them -> numbers and bytes.

Strings have the escapes of C: `\n`, `\"`, up to three octal digits, `\xHH` (-x, -xx). A string that
-s cut off ends with `"...`. Flags are names, numbers (-X raw) or both (`0x80000 /* O_CLOEXEC */`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from etrace.imports.strace.lines import ANGLE

_STRING = rb'"(?:[^"\\]|\\.)*+"(?:\.\.\.)?'


def _group(depth: int) -> bytes:
    inner = b"" if depth == 0 else b"|" + _group(depth - 1)
    return rb"[\[{(](?:" + _STRING + rb"|" + ANGLE + inner + rb"|[^\"\[\]{}()])*+[\]})]"


#: one argument: anything up to a comma outside of strings, angles and brackets
_ARGUMENT = re.compile(
    rb"\s*+((?:" + _STRING + rb"|" + ANGLE + rb"|" + _group(2) + rb"|[^,\"])*+)(?:,|$)", re.DOTALL
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PLAIN = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b"}
_DESCRIPTOR = re.compile(
    rb"(AT_FDCWD|-?\d{1,20}(?: /\* AT_FDCWD \*/)?)(" + ANGLE + rb")?(?:\(deleted\))?"
)
_COMMENT = re.compile(rb"/\*[^*]*\*/")
_DEVICE = re.compile(rb"<(?:char|block) \d{1,20}:\d{1,20}>$")
AT_FDCWD = -100

#: numbers of x86 where this machine has no name for one, or where C libraries lie (O_LARGEFILE: 0)
_X86 = {
    "O_ACCMODE": 0o3, "O_RDONLY": 0, "O_WRONLY": 1, "O_RDWR": 2, "O_CREAT": 0o100, "O_EXCL": 0o200,
    "O_NOCTTY": 0o400, "O_TRUNC": 0o1000, "O_APPEND": 0o2000, "O_NONBLOCK": 0o4000,
    "O_DSYNC": 0o10000, "FASYNC": 0o20000, "O_DIRECT": 0o40000, "O_LARGEFILE": 0o100000,
    "O_DIRECTORY": 0o200000, "O_NOFOLLOW": 0o400000, "O_NOATIME": 0o1000000,
    "O_CLOEXEC": 0o2000000, "O_SYNC": 0o4010000, "O_PATH": 0o10000000, "O_TMPFILE": 0o20200000,
}  # fmt: skip
#: asm-generic of arm64 has these elsewhere
_OWN = ("O_DIRECT", "O_DIRECTORY", "O_NOFOLLOW", "O_TMPFILE")
#: clone(2), linux/sched.h
_CLONE = {
    "CLONE_NEWTIME": 0x80, "CLONE_VM": 0x100, "CLONE_FS": 0x200, "CLONE_FILES": 0x400,
    "CLONE_SIGHAND": 0x800, "CLONE_PIDFD": 0x1000, "CLONE_PTRACE": 0x2000, "CLONE_VFORK": 0x4000,
    "CLONE_PARENT": 0x8000, "CLONE_THREAD": 0x10000, "CLONE_NEWNS": 0x20000,
    "CLONE_SYSVSEM": 0x40000, "CLONE_SETTLS": 0x80000, "CLONE_PARENT_SETTID": 0x100000,
    "CLONE_CHILD_CLEARTID": 0x200000, "CLONE_DETACHED": 0x400000, "CLONE_UNTRACED": 0x800000,
    "CLONE_CHILD_SETTID": 0x1000000, "CLONE_NEWCGROUP": 0x2000000, "CLONE_NEWUTS": 0x4000000,
    "CLONE_NEWIPC": 0x8000000, "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000, "CLONE_IO": 0x80000000, "CLONE_CLEAR_SIGHAND": 0x100000000,
    "CLONE_INTO_CGROUP": 0x200000000,
}  # fmt: skip
#: fcntl(2), rename(2), linkat(2), close_range(2), mount(2), umount(2)
_OTHERS = {
    "F_DUPFD": 0, "F_GETFD": 1, "F_SETFD": 2, "FD_CLOEXEC": 1, "F_DUPFD_CLOEXEC": 1030,
    "RENAME_NOREPLACE": 1, "RENAME_EXCHANGE": 2, "RENAME_WHITEOUT": 4,
    "AT_SYMLINK_FOLLOW": 0x400, "AT_EMPTY_PATH": 0x1000, "AT_SYMLINK_NOFOLLOW": 0x100,
    "CLOSE_RANGE_UNSHARE": 2, "CLOSE_RANGE_CLOEXEC": 4,
    "MS_RDONLY": 1, "MS_NOSUID": 2, "MS_NODEV": 4, "MS_NOEXEC": 8, "MS_SYNCHRONOUS": 16,
    "MS_REMOUNT": 32, "MS_MANDLOCK": 64, "MS_DIRSYNC": 128, "MS_NOSYMFOLLOW": 256,
    "MS_NOATIME": 1024, "MS_NODIRATIME": 2048, "MS_BIND": 4096, "MS_MOVE": 8192, "MS_REC": 16384,
    "MS_SILENT": 32768, "MS_POSIXACL": 1 << 16, "MS_UNBINDABLE": 1 << 17, "MS_PRIVATE": 1 << 18,
    "MS_SLAVE": 1 << 19, "MS_SHARED": 1 << 20, "MS_RELATIME": 1 << 21, "MS_KERNMOUNT": 1 << 22,
    "MS_I_VERSION": 1 << 23, "MS_STRICTATIME": 1 << 24, "MS_LAZYTIME": 1 << 25,
    "MNT_FORCE": 1, "MNT_DETACH": 2, "MNT_EXPIRE": 4, "UMOUNT_NOFOLLOW": 8, "PR_SET_NAME": 15,
}  # fmt: skip


def signals() -> dict[str, int]:
    """Return the numbers of the signals by name."""
    import signal  # noqa: PLC0415  slow to import

    return {each.name: each.value for each in signal.Signals}


def _numbers() -> dict[bytes, int]:
    own = {name: getattr(os, name) for name in _OWN if hasattr(os, name)}
    known = {**_X86, **own, **_CLONE, **_OTHERS, **signals()}
    return {name.encode(): number for name, number in known.items()}


NUMBERS = _numbers()
_flags: dict[bytes, int] = {}


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `is_cut` when strace showed only its beginning."""

    value: bytes
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor, and what it stands for when -y shows it."""

    number: int
    path: bytes | None = None


def arguments(text: bytes) -> list[bytes]:
    """Cut at the commas between arguments."""
    found: list[bytes] = []
    at, end = 0, len(text)
    while at < end:
        match = _ARGUMENT.match(text, at)
        if match is None:  # a quote or bracket that does not end: the line was cut off
            found.append(text[at:].strip())
            break
        found.append(match[1].strip())
        at = match.end()
    return found


def unescape(text: bytes) -> bytes:
    """Decode the escapes of a string or path."""
    return _ESCAPE.sub(_unescaped, text) if b"\\" in text else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, char = match.groups()
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    return _PLAIN.get(char, char)


def string(text: bytes) -> Text | None:
    """Read a string; None for anything else: NULL, an address, a variable."""
    is_cut = text.endswith(b'"...')
    if is_cut:
        text = text[:-3]
    if len(text) < 2 or text[:1] != b'"' or text[-1:] != b'"':
        return None
    return Text(unescape(text[1:-1]), is_cut)


def strings(text: bytes) -> list[Text] | None:
    """Read a list of strings; None for an address. An item `...` is an empty string, cut off."""
    if text[:1] != b"[" or text[-1:] != b"]":
        return None
    return [string(word) or Text(b"", is_cut=True) for word in arguments(text[1:-1])]


def descriptor(text: bytes) -> Descriptor | None:
    """Read a descriptor, with the path of -y."""
    found = _DESCRIPTOR.match(text)
    if found is None:
        return None
    number = AT_FDCWD if b"AT_FDCWD" in found[1] else int(found[1])
    path = opened_path(found[2][1:-1]) if found[2] else None
    return Descriptor(number, path)


def opened_path(shown: bytes) -> bytes | None:
    """Decode what is in an angle after a descriptor; None for nothing."""
    return unescape(_DEVICE.sub(b"", shown)) or None


def number(text: bytes) -> int | None:
    """Read a number or flags; None when a name is unknown or there is none."""
    known = _flags.get(text)
    if known is None:
        try:
            known = _sum(_COMMENT.sub(b"", text))
        except ValueError:
            return None
        if len(_flags) < 1 << 12:
            _flags[text] = known
    return known


def _sum(text: bytes) -> int:
    total = 0
    for word in text.split(b"|"):
        name = word.strip()
        named = NUMBERS.get(name)
        total |= _literal(name) if named is None else named
    return total


def _literal(text: bytes) -> int:
    """Read a number as C writes it: 10, 0x10, 010."""
    is_octal = len(text) > 1 and text.startswith(b"0") and text.isdigit()
    value = int(text, 8 if is_octal else 0)
    if abs(value) >= 1 << 64:
        raise ValueError
    return value


def fields(text: bytes) -> dict[bytes, bytes]:
    """Read `{name=value, ..}`, or `name=value` arguments as of clone."""
    body = text[1:-1] if text[:1] == b"{" and text[-1:] == b"}" else text
    return dict(_pairs(body))


def _pairs(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    for word in arguments(body):
        name, mark, value = word.partition(b"=")
        if mark:
            yield name, value
