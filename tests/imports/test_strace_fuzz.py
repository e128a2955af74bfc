# SPDX-License-Identifier: Apache-2.0
"""Any log becomes a trace that the parser reads, or an error that names the line."""

from __future__ import annotations

import io
import re

import pytest
import trace_lines
from databases import tables_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from etrace.errors import EtraceError
from etrace.imports.strace.convert import Converter
from etrace.imports.strace.sources import Clock, Log, Reading

PIDS = st.sampled_from([b"", b"10 ", b"11 ", b"12 ", b"[pid 10] ", b"[pid 13] "])
TIMES = st.sampled_from(
    [b"", b"1795392547.1 ", b"1795392540.9 ", b"09:00:00 ", b"  0.5 ", b"999999999999.9 "]
)
FDS = st.sampled_from(
    [b"3", b"4</a>", b"AT_FDCWD", b"AT_FDCWD</w>", b"-1", b"99999999999", b"4294967295", b"x"]
)
WORDS = st.sampled_from(
    [b'"a"', b'"/b/../c"...', b'"\\303\\12"', b"NULL", b"0x7f", b'["a", "b"]', b'["a", ...]', b"["]
)
FLAGS = st.sampled_from([b"O_RDONLY|O_CLOEXEC", b"0x241", b"F_DUPFD", b"SIGCHLD", b"O_X", b"-1"])
NAMES = st.sampled_from(
    b"""execve execveat openat open creat openat2 close close_range pipe2 dup dup2 dup3 fcntl rename
    renameat2 linkat symlinkat symlink chdir fchdir clone clone3 fork vfork exit_group mount umount2
    prctl ioctl read""".split()
)
RESULTS = st.sampled_from(
    [b"0", b"3</a>", b"11", b"12", b"13", b"-1 ENOENT (x)", b"?", b"10", b"99999999999999", b"x"]
)
CALLS = st.builds(
    lambda name, words, result: name + b"(" + b", ".join(words) + b") = " + result,
    NAMES,
    st.lists(st.one_of(FDS, WORDS, FLAGS), max_size=5),
    RESULTS,
)
ENDS = st.builds(
    lambda name, words, tail: name + b"(" + b", ".join(words) + tail,
    NAMES,
    st.lists(st.one_of(FDS, WORDS, FLAGS), max_size=4),
    st.sampled_from([b" <unfinished ...>", b" <pid changed to 10 ...>", b"", b'"']),
)
RESUMED = st.builds(
    lambda name, result: b"<... " + name + b" resumed>) = " + result, NAMES, RESULTS
)
OTHERS = st.sampled_from(
    [
        b"+++ exited with 3 +++", b"+++ killed by SIGRT_7 +++", b"--- SIGCHLD {} ---",
        b"+++ superseded by execve in pid 11 +++", b"strace: Process 12 attached",
        b"vfork(strace: Process 13 attached", b" <unfinished ...>", b"\x00\xff", b"hello",
    ]
)  # fmt: skip
LINES = st.builds(
    lambda pid, time, rest: pid + time + rest,
    PIDS,
    TIMES,
    st.one_of(CALLS, ENDS, RESUMED, OTHERS, st.binary(max_size=30)),
)
LOGS = st.lists(LINES, max_size=40).map(b"\n".join)


def convert(text: bytes) -> bytes | None:
    """Return the trace of a log, None when it is refused as it should be."""
    stream, reading = io.BytesIO(), Reading()
    converter = Converter(stream, b"/w", reading=reading)
    log = Log("log", io.BytesIO(text), 0, Clock(0, reading.lacks))
    try:
        converter.feed(log.lines(reading))
        converter.finish()
    except EtraceError as error:
        assert re.match(r"log:\d+: |the log has no call", error.message), error.message  # noqa: PT017
        return None
    return stream.getvalue()


@given(LOGS)
@example(b"dup(99999999999) = 0")
@example(b"999999999999.9 close(3) = 0\n999999999999.9 close(4) = 0")
@example(b'mount("a", "b", "c", -1, NULL) = 0\nclone(flags=-1) = 5')
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_log_becomes_a_clean_trace_or_a_refusal(text: bytes) -> None:
    made = convert(text)
    if made is None:
        return
    trace = trace_lines.parse(made)
    trace_lines.check_stamps(trace, 0, 2**63)
    _, counts = tables_of([made])
    assert [problem for problem in counts["problems"] if problem[0]] == []


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read(text: bytes) -> None:
    convert(text)


def test_a_long_line_of_any_sort_takes_no_time() -> None:
    for piece in (
        b"<",
        b"[",
        b'"',
        b"(",
        b"{",
        b"<A:[",
        b") = ",
        b" ",
        b"\\",
        b'"...',
        b"->",
        b", ",
    ):
        for name in (b"execve(", b"<... openat resumed>", b"10 1.0 close("):
            convert(name + piece * 50_000)
            convert(name + piece * 50_000 + b") = 0")


def test_a_chain_of_processes_that_wait_for_their_parents() -> None:
    lines = []
    for pid in range(10, 3000):
        lines.append(b"%d vfork( <unfinished ...>" % pid)
    for pid in range(10, 3000):
        lines.append(b"%d <... vfork resumed>) = %d" % (pid, pid + 1))
    made = convert(b"\n".join(lines))
    assert made is not None
    assert made.count(b"SchedFork|") == 2990


DIGITS = b"9" * 5000


@pytest.mark.parametrize(
    "line",
    [
        DIGITS + b" close(3) = 0",
        b"[pid " + DIGITS + b"] close(3) = 0",
        b"10 close(3) = " + DIGITS,
        b"10 close(" + DIGITS + b") = 0",
        b"10 close(3) = 0x" + DIGITS,
        b"10 openat(AT_FDCWD, \"a\", O_RDONLY) = -1 /* " + DIGITS + b" in strace's PID NS */",
        b"10 openat(AT_FDCWD, \"a\", " + DIGITS + b") = 3",
        b"10 vfork() = 11 /* " + DIGITS + b" in strace's PID NS */",
        b"10 +++ exited with " + DIGITS + b" +++",
        b"10 +++ killed by SIGRT_" + DIGITS + b" +++",
        b"10 +++ superseded by execve in pid " + DIGITS + b" +++",
        b"10 close(3 <pid changed to " + DIGITS + b" ...>",
        b"strace: Process " + DIGITS + b" attached",
        b"close(3) = 0 strace: Process " + DIGITS + b" attached",
    ],
)  # fmt: skip
def test_a_number_of_any_length_is_no_crash(line: bytes) -> None:
    """Python refuses to convert more than 4300 digits, by a ValueError."""
    assert convert(b"10 dup(3) = 4\n" + line + b"\n10 dup(4) = 5") is not None
