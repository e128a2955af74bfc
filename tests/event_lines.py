# SPDX-License-Identifier: Apache-2.0
"""Event -> lines, in Python and from the text of seed 004 alone: the oracle for the C formatter.

Usage and Written are from docs/format.md.

Nothing here reads events.toml or calls the C code, so an error in either shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping

#: tag -> its arguments as the seed prints them: `name=KIND`, KIND a number's C type or the tag of
#: the string that it is the size of; in brackets what may be absent.
SYNTAX = {
    "New_proc": "argsize=u32 prognameisize=PI prognamepsize=PP cwdsize=CW",
    "SchedFork": "pid=s64",
    "SysClone": "flags=u64",
    "SysCloneFailed": "",
    "Exit": "status=u32",
    "Usage": "user=s64 system=s64 maxrss=s64 rchar=s64 wchar=s64 voluntary=s64 forced=s64",
    "Written": "fd=s32 cut=s64 size=OU",
    "Open": "fnamesize=FN forigsize=FO flags=u32 mode=u32 fd=s32",
    "Close": "fd=s32",
    "Pipe": "fd1=s32 fd2=s32 flags=u32",
    "Dup": "oldfd=s32 newfd=s32 flags=u32",
    "RenameFrom": "fnamesize=RF",
    "Rename2From": "fnamesize=RF flags=u32",
    "RenameTo": "fnamesize=RT",
    "RenameFailed": "",
    "LinkFrom": "fnamesize=LF",
    "LinkatFrom": "fnamesize=LF flags=u32",
    "LinkTo": "fnamesize=LT",
    "LinkFailed": "",
    "Symlink": "targetnamesize=ST [resolvednamesize=SR] linknamesize=SL",
    "Mount": "[sourcenamesize=MS] targetnamesize=MT [typenamesize=MX] flags=u64",
    "MountFailed": "",
    "Umount": "targetnamesize=MT flags=u32",
    "UmountFailed": "",
    "Comm": "size=CN",
}
KINDS = ("u32", "s32", "u64", "s64")
PART_BYTES = 900

Value = int | bytes | None


def arguments(tag: str) -> list[tuple[str, str, bool]]:
    """Return `(name, kind or string tag, may be absent)` of each argument of an event."""
    fields = SYNTAX[tag].split()
    return [(*_halves(field.strip("[]")), field.startswith("[")) for field in fields]


def _halves(field: str) -> tuple[str, str]:
    name, _, kind = field.partition("=")
    return name, kind


def prefix(upid: int, cpu: int, time_ns: int) -> bytes:
    """Return `<upid>,<cpu>,<time>,<timen>!`."""
    return b"%d,%d,%d,%d!" % (upid, cpu, time_ns // 10**9, time_ns % 10**9)


def text_lines(head: bytes, opening: bytes, text: bytes, *, bar: bool = True) -> bytes:
    """Return one string or part: its line, a Cont for each newline, Cont_end when there was one."""
    first, *rest = text.split(b"\n")
    lines = [opening + first] + [b"Cont|" + line for line in rest]
    if rest:
        lines.append(b"Cont_end|" if bar else b"Cont_end")
    return b"".join(head + line + b"\n" for line in lines)


def parts(text: bytes) -> list[bytes]:
    """Cut a string into pieces of at most 900 bytes; an empty string is one piece."""
    cuts = range(0, max(len(text), 1), PART_BYTES)
    return [text[at : at + PART_BYTES] for at in cuts]


def string_lines(head: bytes, tag: str, text: bytes) -> bytes:
    """Return `TAG|text`, or the numbered parts and `TAG_end`."""
    name = tag.encode()
    if len(text) < PART_BYTES:
        return text_lines(head, name + b"|", text)
    pieces = parts(text)
    out = b""
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1
        out += text_lines(head, b"%s[%d]" % (name, number), piece, bar=not is_last)
    return out + head + name + b"_end\n"


def item_lines(head: bytes, tag: str, number: int, text: bytes) -> bytes:
    """Return one item of a list: every part carries the item's number."""
    opening = b"%s[%d]" % (tag.encode(), number)
    return b"".join(text_lines(head, opening, piece) for piece in parts(text))


def env_lines(head: bytes, variable: bytes) -> bytes:
    """Return one variable of the environment: numbered parts without an end line."""
    return b"".join(
        text_lines(head, b"Env[%d]" % number, piece) for number, piece in enumerate(parts(variable))
    )


def event_lines(head: bytes, tag: str, values: Mapping[str, Value]) -> bytes:
    """Return an event's own line and its strings.

    `values` has the numbers by argument name, the strings by their tag; None is an absent string.
    """
    shown, strings = [], b""
    for name, kind, _ in arguments(tag):
        value = values[name] if kind in KINDS else values.get(kind)
        if isinstance(value, bytes):
            strings += string_lines(head, kind, value)
            value = len(value)
        if value is not None:
            shown.append(f"{name}={value:d}")
    return head + f"{tag}|{','.join(shown)}\n".encode() + strings


def exec_lines(head: bytes, values: Mapping[str, Value], argv: list[bytes]) -> bytes:
    """Return New_proc with its strings, arguments and End_of_args; argsize follows from `argv`."""
    size = sum(len(argument) + 1 for argument in argv)
    out = event_lines(head, "New_proc", {"argsize": size, **values})
    for number, argument in enumerate(argv):
        out += item_lines(head, "A", number, argument)
    return out + head + b"End_of_args|\n"
