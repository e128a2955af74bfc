# SPDX-License-Identifier: Apache-2.0
r"""A line of strace -> its process, its time, and a call, its result or an end.

Facts: strace(1) and the logs of strace 4.26 to 6.x. A line is

    [pid N<comm>] TIME [NUMBER] NAME(ARGUMENTS) = RESULT <DURATION>

where each part but the call may be missing. A call that another process interrupts ends with
`<unfinished ...>` and goes on as `<... NAME resumed>REST) = RESULT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from etrace.spec import syscalls

PID_MAX = 1 << 22
NS = 10**9
DAY_NS = 86400 * NS
#: the calls that say something about processes and files; all others are passed over
CALLS = frozenset(
    name.encode()
    for name in syscalls.load().of_strace("always", "mounts", "thread_names", "import")
)
#: an angle: the path or kind of a descriptor; sockets have `->` in it, devices `<char 1:3>`
ANGLE = rb"<(?:[A-Z]\w*+:\[(?:[^\]]|\](?!>)){0,300}+\]|(?:[^<>]|<[^<>]*+>)*+)>"

_HEAD = re.compile(
    rb"""(?:\[pid\s+(?P<pid>\d{1,20})(?:<[^>]*>)?\]\s|(?P<first>\d{1,20})(?:<[^>]*>)?\s+(?=[\d<+\-?\w\[]))?
    \s*
    (?:(?P<h>\d\d?):(?P<m>\d\d):(?P<s>\d\d)(?:\.(?P<fraction>\d{1,9}))?\s+
     |(?P<seconds>\d{1,12})\.(?P<part>\d{1,9})\s+
     |(?P<whole>\d{8,12})\s+)?
    (?:\(\+\s*\d{1,20}\.\d{1,20}\)\s+)?
    (?:\[[\s0-9a-f?]+\]\s+){0,2}""",
    re.VERBOSE,
)
_OTHER = re.compile(rb"(?:(\w+)\(|<\.\.\. (\w+) resumed>)")
_NAME = re.compile(rb"(\w+)\(")
UNFINISHED = b"<unfinished ...>"
_MOVED = re.compile(rb"<pid changed to (\d{1,20}) \.\.\.>")
_RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>\s?(.*)", re.DOTALL)
_EXITED = re.compile(rb"\+\+\+ exited with (\d{1,20}) \+\+\+")
_KILLED = re.compile(rb"\+\+\+ killed by (\w+)(?: \(core dumped\))? \+\+\+")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d{1,20}) \+\+\+")
_RESULT = re.compile(
    rb"(?P<value>-?\d{1,20}|0x[0-9a-f]+|\?)(?P<path>" + ANGLE + rb")?(?:\(deleted\))?"
    rb"(?: /\* (?P<outer>\d{1,20}) in strace's PID NS \*/)?(?: (?P<error>E[A-Z0-9]+))?(?= |$|\))"
)
_EQUALS = re.compile(rb"\)\s+= ")
#: what may end a line: how long the call took, or that strace does not know
_AFTER = re.compile(rb"<(?:[\d.]+|unavailable)>")
_QUIET = re.compile(
    rb"--- |strace: |\[ Process PID=|\s*> |ptrace\(|Process \d{1,20} (?:attached|detached|resumed"
    rb"|suspended)|\+\+\+ "
)


class Kind(Enum):
    """What a line is."""

    CALL = "call"  #: `arguments` and `result`
    BEGUN = "begun"  #: `arguments` so far; `number`: the process that it goes on in, or 0
    RESUMED = "resumed"  #: the rest of `arguments`, and `result`
    EXITED = "exited"  #: `number` is the status
    KILLED = "killed"  #: `name` is the signal
    SUPERSEDED = "superseded"  #: `number` is the thread that executed
    NOTHING = "nothing"  #: a line of strace that says nothing about a call: a signal, a note


#: lines after which a process says no more
ENDS = frozenset((Kind.EXITED, Kind.KILLED, Kind.SUPERSEDED))


@dataclass(frozen=True, slots=True)
class Result:
    """What a call returned: `value` is None for `?`; `path` as `-y` shows it, undecoded.

    `is_outer`: strace says which process of its own PID namespace the value is.
    """

    value: int | None
    path: bytes = b""
    error: bytes = b""
    is_outer: bool = False


@dataclass(slots=True)
class Line:
    """One line. `pid` 0: the line has none; `time` None: it has none.

    `time` is in ns: since 1970 (-ttt), of the day (-t, -tt), or since the line before (-r).
    """

    kind: Kind
    pid: int = 0
    time: int | None = None
    is_of_day: bool = False
    is_relative: bool = False
    name: bytes = b""
    arguments: bytes = b""
    result: Result | None = None
    number: int = 0


def parse(text: bytes) -> Line | None:
    """Read one line, without its newline; None when it is not one of strace.

    Calls that are not in CALLS are `NOTHING`.
    """
    head = _HEAD.match(text)
    assert head is not None  # every part may be missing
    rest = text[head.end() :]
    name = _OTHER.match(rest)
    if name and (name[1] or name[2]) not in CALLS:
        line: Line | None = Line(Kind.NOTHING)
    else:
        line = _rest(rest)
    if line is None:
        return None
    line.pid = int(head["pid"] or head["first"] or 0)
    if line.pid > PID_MAX and head["first"]:  # seconds alone: a time, not a process
        line.time, line.pid = line.pid * NS, 0
    elif head["h"]:
        clock = (int(head["h"]) * 60 + int(head["m"])) * 60 + int(head["s"])
        line.time = clock * NS + _fraction(head["fraction"])
        line.is_of_day = True
    elif head["seconds"]:
        line.time = int(head["seconds"]) * NS + _fraction(head["part"])
        line.is_relative = int(head["seconds"]) < 10**8
    elif head["whole"]:
        line.time = int(head["whole"]) * NS
    return line


def _fraction(digits: bytes | None) -> int:
    return int(digits.ljust(9, b"0")) if digits else 0


def _rest(text: bytes) -> Line | None:
    if text.startswith(b"+++ "):
        return _end(text)
    if found := _RESUMED.match(text):
        return _resumed(found[1], found[2])
    if found := _NAME.match(text):
        # before complete calls: an argument may be `test $((1 + 1)) = 2`; names have no bare >
        begun = _begun(found[1], text[found.end() :]) if text.endswith(b" ...>") else None
        if begun is not None:
            return begun
        arguments, result = _split(text[found.end() :])
        if result is not None:
            return Line(Kind.CALL, name=found[1], arguments=arguments, result=result)
    if not text.strip() or _QUIET.match(text):
        return Line(Kind.NOTHING)
    return None


def _begun(name: bytes, rest: bytes) -> Line | None:
    if rest.endswith(UNFINISHED):
        return Line(Kind.BEGUN, name=name, arguments=rest.removesuffix(UNFINISHED).rstrip())
    at = rest.rfind(b"<")
    moved = _MOVED.fullmatch(rest, at) if at >= 0 else None
    if moved is None:
        return None
    return Line(Kind.BEGUN, name=name, arguments=rest[:at].rstrip(), number=int(moved[1]))


def _end(text: bytes) -> Line | None:
    if found := _EXITED.match(text):
        return Line(Kind.EXITED, number=int(found[1]))
    if found := _KILLED.match(text):
        return Line(Kind.KILLED, name=found[1])
    if found := _SUPERSEDED.match(text):
        return Line(Kind.SUPERSEDED, number=int(found[1]))
    return Line(Kind.NOTHING) if text.endswith(b"+++") else None


def _resumed(name: bytes, rest: bytes) -> Line | None:
    if rest.endswith(UNFINISHED):  # -e trace=... with an exit in between
        return Line(Kind.NOTHING)
    arguments, result = _split(rest)
    if result is None:
        return None
    return Line(Kind.RESUMED, name=name, arguments=arguments, result=result)


def _split(text: bytes) -> tuple[bytes, Result | None]:
    """Split `ARGUMENTS) = RESULT`.

    The last `) = ` is not the one when it is in the name that -y shows after the result. Names
    have no bare angles, so after a result there is none.
    """
    last_angle = _last_angle(text)
    for found in reversed(list(_EQUALS.finditer(text))):
        result = _RESULT.match(text, found.end())
        if result and result.end() > last_angle:
            return text[: found.start()], _result(result)
    return b"", None


def _last_angle(text: bytes) -> int:
    """Return where the last angle is, of those before what may end a line; -1: there is none."""
    text = text.rstrip()
    start = text.rfind(b"<")
    if start >= 0 and _AFTER.fullmatch(text, start):
        text = text[:start]
    return max(text.rfind(b"<"), text.rfind(b">"))


def _result(found: re.Match[bytes]) -> Result:
    value = found["outer"] or found["value"]
    path = found["path"][1:-1] if found["path"] else b""
    if value == b"?":
        return Result(None, error=found["error"] or b"")
    base = 16 if value.startswith(b"0x") else 10
    return Result(int(value, base), path, found["error"] or b"", bool(found["outer"]))
