# SPDX-License-Identifier: Apache-2.0
"""Operations of a file access trace become events; what has none is counted."""

from __future__ import annotations

import io

import pytest
import trace_lines
from databases import tables_of
from hypothesis import given, settings
from imports.access_traces import SEED, traces
from imports.strace_texts import facts

from etrace.errors import EtraceError
from etrace.imports.access_trace import reader
from etrace.imports.access_trace.events import Events, words
from etrace.imports.access_trace.model import AccessTrace

HEAD = b"""2
9
5=Process
42=ProcessExec
45=ReadFile
1=CreateFile
9=DeleteFile
41=ProcessExit
51=Probe
99=SomethingNew
47=CreateHardlinkSource
4
0=None
1=Read
2=Write
4=Probe
2
10,"/bin/sh",1,639309930886289840,639309930896289840,0
sh -c x
11,"/bin/cc",10,639309930887289840,639309930888289840,3131746989
cc -c a.c
6
1=/bin/sh
2=/bin/cc
3=/w/a.c
4=/w/t
5=/w/a.o
6={Invalid}
0
"""
EVENTS = (
    "10,1,,5,0,0,0,", "10,1,,42,0,0,0,", "10,3,,51,4,2,0,", "11,1,,5,0,0,0,", "11,2,,42,0,0,0,",
    "11,3,,45,1,0,0,", "11,4,,45,1,2,0,", "11,4,,1,2,0,0,", "11,4,,9,2,0,0,", "11,5,,1,2,0,0,",
    "11,3,,99,1,0,0,", "11,2,,41,0,0,0,", "10,1,,41,0,0,0,",
)  # fmt: skip


def convert(text: bytes) -> tuple[list[str], dict[str, int], bytes]:
    stream = io.BytesIO()
    events = Events(reader.read("f", io.BytesIO(text)), stream)
    events.write()
    made = stream.getvalue()
    return facts(trace_lines.parse(made)), dict(events.left_out), made


def build(related: int = 9) -> bytes:
    """Return a trace in which operation 9 belongs to the one with the access `related`."""
    lines = [f"{n},{event}" for n, event in enumerate(EVENTS)]
    pairs = [f"{n},{n + 1},{related if n == 9 else 0}" for n in range(len(EVENTS))]
    blocks = [str(len(lines)), *lines, str(len(pairs)), *pairs, ""]
    return HEAD + "\n".join(blocks).encode()


def test_a_build_of_linux() -> None:
    shown, left_out, made = convert(build())
    assert shown == [
        "1 New_proc /bin/sh /bin/sh  sh -c x",
        "1 SchedFork 1.1",
        "1.1 New_proc /bin/cc /bin/cc  cc -c a.c",
        "1.1 Open 0 0 3 /w/a.c /w/a.c",
        "1.1 Close 3",
        "1.1 Open 577 0 3 /w/t /w/t",
        "1.1 RenameFrom /w/t",
        "1.1 RenameTo /w/a.o",
        "1.1 Open 0 0 4 /w/a.c /w/a.c",  # SomethingNew, by its access
        "1.1 Close 4",
        "1 Exit 0",
    ]
    assert left_out == {"access{es} that failed": 2}
    stamps = [line.time_ns for line in trace_lines.parse(made).lines]
    assert stamps == sorted(stamps)
    assert stamps[-1] == (639309930896289840 - 621355968000000000) * 100


def test_without_a_correlation_a_file_is_deleted_and_another_made() -> None:
    shown, left_out, _ = convert(build(related=0))
    assert [line for line in shown if "Rename" in line] == [], "the block says: not related"
    assert "1.1 Open 577 0 4 /w/a.o /w/a.o" in shown
    assert left_out["access{es} that {opens|open} nothing"] == 1


def test_a_process_of_windows_executes_when_it_begins() -> None:
    shown, left_out, _ = convert(SEED)
    assert shown == [
        "1 New_proc C:\\hello.exe C:\\hello.exe  C:\\hello.exe XYZ",
        "1 Open 0 0 3 B:\\Out\\a,b=c B:\\Out\\a,b=c",
        "1 Close 3",
        "1 Exit 0",
    ]
    assert left_out == {"access{es} that {opens|open} nothing": 2}


def test_a_pid_that_comes_again_is_another_process() -> None:
    line = b'11,"/bin/ld",10,639309930889289840,639309930889289841,7\nld\n'
    again = b"13,11,1,,5,0,0,0,\n14,11,3,,45,1,0,0,\n"
    text = build().replace(b'2\n10,"', b'3\n10,"').replace(b"6\n1=/bin/sh", line + b"6\n1=/bin/sh")
    text = text.replace(b"\n13\n0,10", b"\n15\n0,10").replace(
        b"13\n0,1,0\n", again + b"13\n0,1,0\n"
    )
    shown, _, _ = convert(text)
    assert "1 SchedFork 1.2" in shown
    assert "1.2 Open 0 0 3 /w/a.c /w/a.c" in shown
    assert "1.2 Exit 7" in shown


def test_a_trace_of_nothing_is_refused() -> None:
    with pytest.raises(EtraceError, match="no process and no operation"):
        convert(b"1\n0\n0\n0\n0\n0\n0\n")


@settings(deadline=None, max_examples=100)
@given(traces())
def test_any_trace_becomes_clean_event_lines(trace: AccessTrace) -> None:
    stream = io.BytesIO()
    try:
        Events(trace, stream).write()
    except EtraceError:
        assert not trace.processes
        return
    made = stream.getvalue()
    trace_lines.check_stamps(trace_lines.parse(made), 0, 2**63)
    _, counts = tables_of([made])
    assert [problem for problem in counts["problems"] if problem[0]] == []


def test_command_lines_are_taken_apart() -> None:
    assert words(b"cc  -c a.c") == [b"cc", b"-c", b"a.c"]
    assert words(rb'"C:\Program Files\cl.exe" /c "a b.c" ""') == [
        rb"C:\Program Files\cl.exe", b"/c", b"a b.c", b"",
    ]  # fmt: skip
