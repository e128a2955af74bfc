# SPDX-License-Identifier: Apache-2.0
"""A second thread changes a call's arguments in memory: the trace says what the kernel did."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import trace_lines
from backends import capture
from event_programs import compiled

N = 200
ATTEMPTS = 20
O_CREATED_AND_EMPTIED = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
CLONE_FS = 0x200


def race(folder: Path, mode: str, *options: str) -> tuple[list[bytes], list[str], int]:
    """Return the data of all lines, what the program says of its calls, and how many changed."""
    stats = folder.with_name("stats")
    program = compiled("races", folder)
    done = capture([program, mode, str(N)], folder, options=["--stats", str(stats), *options])
    assert done.status == 0, done.stderr
    lines = trace_lines.parse(done.trace.read_bytes()).lines
    said = done.stdout.decode().split("\n")[:-1]
    counted = json.loads(stats.read_text())["changed_arguments"]
    assert (b"changed in memory" in done.stderr) == bool(counted)
    return [line.data for line in lines], said, counted


def lost_race(folder: Path, mode: str, *options: str) -> list[bytes]:
    """Return the lines of a run where the second thread came in time: a busy machine delays it."""
    for _ in range(ATTEMPTS):
        data, _, counted = race(folder, mode, *options)
        if counted:
            return data
    raise AssertionError(f"the second thread never came in time in {ATTEMPTS} runs")


def numbers(data: list[bytes], pattern: bytes) -> list[int]:
    found = (re.fullmatch(pattern, each) for each in data)
    return [int(match[1]) for match in found if match]


def test_flags_of_openat2_are_those_that_the_kernel_copied(folder: Path) -> None:
    data = lost_race(folder, "openat2")
    opened = [
        (data[i].partition(b"flags=")[2].partition(b",")[0], each)
        for i, each in enumerate(data[1:])
        if re.fullmatch(rb"FN\|.*/out\d+", each)
    ]
    assert len(opened) == N
    assert {int(flags) for flags, _ in opened} == {O_CREATED_AND_EMPTIED}


def test_names_are_those_at_the_entry(folder: Path) -> None:
    data = lost_race(folder, "symlink")
    assert [each for each in data if each.startswith(b"ST|")] == [b"ST|a"] * N


def test_the_source_of_a_rename_that_changes_is_counted(folder: Path) -> None:
    data = lost_race(folder, "rename")
    assert [each for each in data if each.startswith(b"RF|")] == [b"RF|%s/a" % bytes(folder)] * N


def test_numbers_that_are_no_pipe_are_counted_and_left_out(folder: Path) -> None:
    data = lost_race(folder, "pipe")
    assert not [each for each in data if re.match(rb"Pipe2?\|.*=0,.*=1,", each)]


def test_what_a_child_of_clone3_shares_is_asked_of_the_kernel(folder: Path) -> None:
    data, said, _ = race(folder, "clone3")
    flags = numbers(data, rb"SysClone\|flags=(\d+)")[-N:]
    assert [bool(each & CLONE_FS) for each in flags] == [each == "1" for each in said]


def test_the_program_of_execveat_is_the_one_that_runs(folder: Path) -> None:
    program = compiled("races", folder)
    for name in ("a", "b"):
        shutil.copy(program, folder / name)
    data, said, _ = race(folder, "execveat")
    executed = [each.decode()[3:] for each in data if re.fullmatch(rb"PP\|.*/[ab]", each)]
    assert executed == said


def test_the_name_of_a_thread_is_the_one_that_it_has(folder: Path) -> None:
    data, said, _ = race(folder, "name", "--thread-names")
    names = [each.decode()[3:] for each in data if each in {b"CN|a", b"CN|b"}]
    assert names == said
