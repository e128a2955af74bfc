# SPDX-License-Identifier: Apache-2.0
"""The comparison of traces finds what differs and nothing else."""

from __future__ import annotations

import pytest
import trace_lines

# What a program says, and a trace that agrees: it makes a child, which opens a file and ends.
PRINTED = (
    b"1!New_proc|argsize=2,prognameisize=2,prognamepsize=2,cwdsize=2\n"
    b"1!PI|/p\n1!PP|/p\n1!CW|/c\n1!A[0]p\n1!End_of_args|\n"
    b"1!SchedFork|pid=1.1\n#tid 1.1 7\n"
    b"1.1!Open|fnamesize=2,forigsize=2,flags=0,mode=0,fd=3\n1.1!FN|/f\n1.1!FO|/f\n"
    b"1.1!Exit|status=<any>\n1!Exit|status=0\n"
)
CHILD = (1 << 22) + 7
TRACE = (
    b"INITCWD=/c\n"
    b"5,0,1,0!Close|fd=9\n"
    b"5,0,1,1!New_proc|argsize=2,prognameisize=2,prognamepsize=2,cwdsize=2\n"
    b"5,0,1,1!PI|/p\n5,0,1,1!PP|/p\n5,0,1,1!CW|/c\n5,0,1,1!A[0]p\n5,0,1,1!End_of_args|\n"
    b"5,0,1,2!SchedFork|pid=%(c)d\n"
    b"%(c)d,1,1,3!Open|fnamesize=2,forigsize=2,flags=0,mode=438,fd=3\n"
    b"%(c)d,1,1,3!FN|/f\n%(c)d,1,1,3!FO|/f\n"
    b"5,0,1,4!Exit|status=0\n"
    b"%(c)d,1,1,5!Exit|status=12\n"
) % {b"c": CHILD}


def compare(text: bytes) -> str:
    return trace_lines.compare_run(PRINTED, trace_lines.parse(text), b"/p")


def test_a_trace_that_agrees_has_no_difference() -> None:
    assert compare(TRACE) == ""


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (TRACE.replace(b"FO|/f", b"FO|/g"), "+1.1!FO|/g"),
        (TRACE.replace(b"5,0,1,4!Exit|status=0\n", b""), "-1!Exit|status=0"),
        (TRACE + b"5,0,1,6!Close|fd=3\n", "+1!Close|fd=3"),
        (TRACE.replace(b"fd=3", b"fd=4"), "fd=4"),
        (TRACE.replace(b"flags=0,mode=438", b"flags=64,mode=438"), "flags=64,mode=438"),
        (TRACE.replace(b"status=12", b"status=x"), "+1.1!Exit|status=x"),
        (TRACE.replace(b"FN|/f", b"FN|/\xff"), r"+1.1!FN|/\xff"),
    ],
)
def test_each_difference_is_shown(wrong: bytes, shown: str) -> None:
    assert shown in compare(wrong)


def test_a_upid_without_the_kernels_tid_is_an_error() -> None:
    other = CHILD + 1
    with pytest.raises(AssertionError, match="is not 7"):
        compare(TRACE.replace(b"%d" % CHILD, b"%d" % other))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"5,0,1,1!Exit|status=0\n", "first line"),
        (b"INITCWD=/\n5,0,1,1!Exit|status=0", "no newline"),
        (b"INITCWD=/\n5,0,1,01!Exit|status=0\n", "padded"),
        (b"INITCWD=/\nExit|status=0\n", "has no prefix"),
    ],
)
def test_lines_that_the_format_forbids_are_errors(text: bytes, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        trace_lines.parse(text)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (b"5,0,1,2!Pipe|fd1=3,fd2=4,flags=0\n5,0,1,1!Close|fd=3\n", "goes back"),
        (b"5,0,1,1!RenameFrom|fnamesize=2\n5,0,1,2!RF|/a\n", "5"),
        (b"5,0,9,1!Close|fd=3\n", "not of this run"),
    ],
)
def test_stamps_of_a_task_are_checked(lines: bytes, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        trace_lines.check_stamps(trace_lines.parse(b"INITCWD=/\n" + lines), 0, 5_000_000_000)


def test_events_are_put_together_from_their_parts() -> None:
    text = (
        b"INITCWD=/\n"
        b"5,0,1,1!New_proc|argsize=9\n5,0,1,1!PI|/a\n5,0,1,1!Cont|b\n5,0,1,1!Cont_end|\n"
        b"5,0,1,1!A[0]x\n5,0,1,1!A[0]y\n5,0,1,1!A[1]\n5,0,1,1!Cont|z\n5,0,1,1!Cont_end|\n"
        b"5,0,1,1!End_of_args|\n5,0,1,2!RenameFrom|fnamesize=3\n5,0,1,2!RF[0]/a\n"
        b"5,0,1,2!RF[1]b\n5,0,1,2!RF_end\n5,0,1,2!RenameFailed|\n"
    )
    found = list(trace_lines.events(trace_lines.parse(text).lines))
    assert [event.tag for event in found] == ["New_proc", "RenameFrom", "RenameFailed"]
    assert found[0].strings == {"PI": b"/a\nb"}
    assert found[0].items == [b"xy", b"\nz"]
    assert found[1].strings == {"RF": b"/ab"}


def test_environments_compare_whatever_their_grouping() -> None:
    one = [
        b"UPID|4",
        b"UPID|5",
        b"Env[0]A=1",
        b"Env[1]2",
        b"UPID|5",
        b"Env[0]B=",
        b"Cont|x",
        b"Cont_end|",
    ]
    two = [b"UPID|5", b"Env[0]B=", b"Cont|x", b"Cont_end|", b"UPID|5", b"Env[0]A=1", b"Env[1]2"]
    two += [b"UPID|4", b"Env[0]A=1", b"Env[1]2"]
    names = {4: "1", 5: "1.1"}
    assert trace_lines.environment(one, names) == trace_lines.environment(two, names)
    assert trace_lines.environment(one[:4], names) != trace_lines.environment(two, names)
