# SPDX-License-Identifier: Apache-2.0
"""Lines of strace in every form that its options give them."""

from __future__ import annotations

import pytest

from etrace.imports.strace.lines import Kind, parse

S = 10**9
CLOCK = ((9 * 60) + 8) * S  # 00:09:08


@pytest.mark.parametrize(
    ("head", "pid", "time", "of_day", "relative"),
    [
        (b"", 0, None, False, False),
        (b"123 ", 123, None, False, False),
        (b"123   ", 123, None, False, False),
        (b"[pid 123] ", 123, None, False, False),
        (b"[pid   123] ", 123, None, False, False),
        (b"[pid 123<sh>] ", 123, None, False, False),
        (b"123<make> ", 123, None, False, False),
        (b"123 1795392547.588720 ", 123, 1795392547588720000, False, False),
        (b"1795392547.588720 ", 0, 1795392547588720000, False, False),
        (b"1795392547.588720123 ", 0, 1795392547588720123, False, False),
        (b"123 1795392547 ", 123, 1795392547 * S, False, False),
        (b"1795392547 ", 0, 1795392547 * S, False, False),
        (b"123 00:09:08 ", 123, 548 * S, True, False),
        (b"[pid 123] 00:09:08.424984 ", 123, 548 * S + 424984000, True, False),
        (b"     0.000412 ", 0, 412000, False, True),
        (b"123      1.000412 ", 123, S + 412000, False, True),
        (b"00:09:08.5 (+     0.000000) ", 0, 548 * S + S // 2, True, False),
        (b"[00007fa8ff610ad7] ", 0, None, False, False),
        (b"[pid 123] [  33] ", 123, None, False, False),
        (b"123 [  33] [00007fa8ff610ad7] ", 123, None, False, False),
    ],
)
def test_the_head_of_a_line(
    head: bytes, pid: int, time: int | None, of_day: bool, relative: bool
) -> None:
    line = parse(head + b"close(3)                = 0")
    assert line is not None
    assert (line.pid, line.time, line.is_of_day, line.is_relative) == (pid, time, of_day, relative)
    assert (line.kind, line.name, line.arguments) == (Kind.CALL, b"close", b"3")


@pytest.mark.parametrize(
    ("text", "value", "path", "error"),
    [
        (b"0", 0, b"", b""),
        (b"3</etc/hosts>", 3, b"/etc/hosts", b""),
        (b"3</dev/null<char 1:3>>", 3, b"/dev/null<char 1:3>", b""),
        (b"3</tmp/a>(deleted)", 3, b"/tmp/a", b""),
        (
            b"3<TCP:[127.0.0.1:1->127.0.0.1:2]> <0.000020>",
            3,
            b"TCP:[127.0.0.1:1->127.0.0.1:2]",
            b"",
        ),
        (b"-1 ENOENT (No such file or directory) <0.000020>", -1, b"", b"ENOENT"),
        (b"?", None, b"", b""),
        (b"? ERESTARTNOINTR (To be restarted)", None, b"", b"ERESTARTNOINTR"),
        (b"0x3 (flags O_RDWR)", 3, b"", b""),
        (b"12 /* 345 in strace's PID NS */", 345, b"", b""),
        (b"29038<sh>", 29038, b"sh", b""),
        (b"010", 10, b"", b""),
        (b"3</t/x) = 5>", 3, b"/t/x) = 5", b""),
        (b"3</t/) = 5 >", 3, b"/t/) = 5 ", b""),
        (b"3</t/) = -1 ENOENT (x) >(deleted) <0.000020>", 3, b"/t/) = -1 ENOENT (x) ", b""),
        (b"? <unavailable>", None, b"", b""),
    ],
)
def test_the_result_of_a_call(text: bytes, value: int | None, path: bytes, error: bytes) -> None:
    line = parse(b'openat(AT_FDCWD, "a) = 3", O_RDONLY) = ' + text)
    assert line is not None
    assert line.result is not None
    assert (line.result.value, line.result.path, line.result.error) == (value, path, error)
    assert line.arguments == b'AT_FDCWD, "a) = 3", O_RDONLY'


@pytest.mark.parametrize(
    ("text", "kind", "name", "arguments", "number"),
    [
        (b"7 pipe2( <unfinished ...>", Kind.BEGUN, b"pipe2", b"", 0),
        (
            b'7 execve("a", [], 0x1 <pid changed to 9 ...>',
            Kind.BEGUN,
            b"execve",
            b'"a", [], 0x1',
            9,
        ),
        (b"7 <... pipe2 resumed>[3, 4], 0) = 0", Kind.RESUMED, b"pipe2", b"[3, 4], 0", 0),
        (
            b'7 openat(AT_FDCWD</) = 3 >, "a) = 5 <unfinished ...>',
            Kind.BEGUN,
            b"openat",
            b'AT_FDCWD</) = 3 >, "a) = 5',
            0,
        ),
        (b"7 <... dup resumed>) = 4</t/) = 5 >", Kind.RESUMED, b"dup", b"", 0),
        (b"7 fchdir(3</t/) = 5 >) = 0", Kind.CALL, b"fchdir", b"3</t/) = 5 >", 0),
        (b"7 +++ exited with 3 +++", Kind.EXITED, b"", b"", 3),
        (b"7 +++ killed by SIGSEGV (core dumped) +++", Kind.KILLED, b"SIGSEGV", b"", 0),
        (b"7 +++ superseded by execve in pid 8 +++", Kind.SUPERSEDED, b"", b"", 8),
        (b"7 --- SIGCHLD {si_signo=SIGCHLD} ---", Kind.NOTHING, b"", b"", 0),
        (b"[pid 7] [ Process PID=7 runs in 32 bit mode. ]", Kind.NOTHING, b"", b"", 0),
        (b'7 read(3, "x", 1) = 1', Kind.NOTHING, b"", b"", 0),
        (b'7 <... read resumed>"x", 1) = 1', Kind.NOTHING, b"", b"", 0),
        (b" > /usr/lib/libc.so.6(close+0x7) [0xf9f0]", Kind.NOTHING, b"", b"", 0),
        (b"", Kind.NOTHING, b"", b"", 0),
    ],
)
def test_other_lines(text: bytes, kind: Kind, name: bytes, arguments: bytes, number: int) -> None:
    line = parse(text)
    assert line is not None
    assert (line.kind, line.name, line.arguments, line.number) == (kind, name, arguments, number)


@pytest.mark.parametrize(
    "text",
    [b"hello", b"gcc -c a.c", b"close(3", b"close(3) = x", b"7 +++ exited", b'openat(AT_FDCWD, "a'],
)
def test_lines_of_others(text: bytes) -> None:
    assert parse(text) is None


def test_a_line_full_of_results_takes_no_longer_than_others() -> None:
    assert parse(b"close(" + b") = 5 " * 200_000 + b">") is None
