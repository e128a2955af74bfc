# SPDX-License-Identifier: Apache-2.0
"""File access traces as text: what is written is read again, and errors name the line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imports.access_traces import SEED, traces

from etrace.errors import EtraceError
from etrace.imports.access_trace import names, reader, writer
from etrace.imports.access_trace.model import AccessTrace, Operation, Process, ticks, unix_ns


def read(text: bytes) -> AccessTrace:
    return reader.read("f", io.BytesIO(text))


def written(trace: AccessTrace) -> bytes:
    stream = io.BytesIO()
    writer.write(trace, stream)
    return stream.getvalue()


def test_the_example_of_the_format_comes_back() -> None:
    trace = read(SEED)
    assert trace.processes == [
        Process(
            16592, rb"C:\hello.exe", 29120, 637989104119349710, 637989104120394770, 0,
            rb"C:\hello.exe XYZ",
        )
    ]  # fmt: skip
    assert trace.events[-1] == Operation(134, 16592, None, 76, 6, 8, 0, False, b"*,?")
    assert [trace.path_of(event) for event in trace.events] == [
        rb"C:\hello.exe", b"B:\\", rb"B:\Out\a,b=c", rb"B:\Out",
    ]  # fmt: skip
    assert written(trace) == SEED


def test_a_mark_and_line_ends_of_windows_are_accepted() -> None:
    windows = b"\xef\xbb\xbf" + SEED.replace(b"\n", b"\r\n") + b"\r\n"
    assert written(read(windows)) == SEED
    assert written(read(SEED.replace(b",0,0,\n", b",0,0\n"))) == SEED  # a pattern left out


@settings(deadline=None)
@given(traces())
def test_what_is_written_is_read_again(trace: AccessTrace) -> None:
    text = written(trace)
    assert read(text) == trace
    assert written(read(text)) == text


@settings(deadline=None, max_examples=150)
@given(traces(), st.data())
def test_a_damaged_file_is_read_or_refused_with_its_line(
    trace: AccessTrace, data: st.DataObject
) -> None:
    text = bytearray(written(trace))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        end = data.draw(st.integers(at, min(at + 4, len(text))))
        text[at:end] = data.draw(st.binary(max_size=3) | st.sampled_from([b"\n", b",", b"9" * 30]))
        if not text:
            break
    try:
        read(bytes(text))
    except EtraceError as error:
        assert error.message.startswith("f:"), error.message  # noqa: PT017
        assert error.message.split(":")[1].isdigit(), error.message  # noqa: PT017


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        read(text)
    except EtraceError as error:
        assert error.message.startswith("f:")  # noqa: PT017


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"1\n4\n", b"4\n4\n", "f:1: expected a version of 1, 2, 3"),
        (b"1\n4\n", b"x\n4\n", "f:1: expected a version of 1, 2, 3"),
        (b"1\n4\n", b"1\nfour\n", "f:2: expected the number of operations"),
        (b"5=Process", b"Process", "f:3: expected NUMBER=OPERATION"),
        (b"3=GetFile", b"5=GetFile", "f:4: expected a number that is not there yet, 5 is"),
        (b'"C:', b"C:", 'f:12: expected PID,"PROGRAM",PARENT,START,END,EXITCODE'),
        (
            b"0,16592,268435474,,5,1,0,0,",
            b"0,16592,268435474,35,5,1,0,0,",
            "f:21: expected one path: MANIFESTPATH or PATH",
        ),
        (
            b"0,16592,268435474,,5,",
            b"0,16592,268435474,,8,",
            "f:21: expected a number of the block of operations, 8 is not in it",
        ),
        (
            b",29,1,0,0,",
            b",29,1,0,2,",
            "f:23: expected ID,PID,MANIFESTPATH,PATH,OPERATION,ACCESS,ERROR,0 or 1,PATTERN",
        ),
        (b"0,0,*,?\n", b"", "f:24: expected ID,PID"),
        (b"134,16592,,76,6,8,0,0,*,?\n", b"", "f:24: the file ends, expected ID,PID"),
        (b"*,?\n", b"*,?\n\nmore\n", "f:26: expected the end of the file"),
    ],
)
def test_what_is_malformed_is_named(old: bytes, new: bytes, message: str) -> None:
    assert old in SEED
    with pytest.raises(EtraceError) as raised:
        read(SEED.replace(old, new, 1))
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (0, b"None"), (1, b"Read"), (3, b"ReadWrite"), (5, b"Read, Probe"), (6, b"Write, Probe"),
        (7, b"ReadWrite, Probe"), (9, b"Read, Enumerate"), (12, b"Probe, Enumerate"),
        (15, b"ReadWrite, Probe, Enumerate"), (24, b"Enumerate, EnumerationProbe"),
        (30, b"Write, Probe, Enumerate, EnumerationProbe"), (31, b"All"),
    ],
)  # fmt: skip
def test_masks_have_the_names_of_dotnet(mask: int, name: bytes) -> None:
    assert names.access_name(mask) == name
    assert names.access_mask(name) == mask


def test_unknown_levels_of_access_have_no_mask() -> None:
    assert names.access_mask(b"Read, Everything") is None


def test_ticks_are_those_of_dotnet() -> None:
    assert ticks(1663313611934971000) == 637989104119349710
    assert unix_ns(637989104119349710) == 1663313611934971000
    assert names.OPERATIONS[b"ProcessExec"] == 42
    assert names.OPERATIONS[b"ProcessBreakaway"] == 52
