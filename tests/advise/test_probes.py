# SPDX-License-Identifier: Apache-2.0
"""What configure, cmake and meson try: no rule finds what it would find below another script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice

GENERATORS = ["sh ./configure", "cmake -S . -B b", "python3 /usr/bin/meson setup b"]
#: what runs below a script from 0 to 9 s
Work = Callable[[Seconds, int], None]


def copies(story: Seconds, script: int) -> None:
    story.run((10, 8000), "cp", "-r", "a", "b", parent=script)


def waits(story: Seconds, script: int) -> None:
    program = story.begin(10, "ask", parent=script)
    story.at(8000).usage(program, 10 * MS, 0, 4096, 1, 1, 9, 1).exit(program)


def long_command(story: Seconds, script: int) -> None:
    story.builder.on(0)
    story.run((10, 8000), "long", parent=script)
    story.builder.on(1)


def one_by_one(story: Seconds, script: int) -> None:
    story.builder.on(0)
    for number in range(4):
        begin = 10 + 2000 * number
        story.compile((begin, begin + 1900), f"f{number}", parent=script)
        story.builder.on(1)


def serial_makes(story: Seconds, script: int) -> None:
    for number in range(2):
        story.builder.on(number)
        begin = 10 + 4000 * number
        make = story.begin(begin, "make", "cmTC_12345", parent=script)
        story.run((begin + 1, begin + 3900), "gen", parent=make)
        story.end(begin + 3910, make)


def too_few_jobs(story: Seconds, script: int) -> None:
    make = story.begin(10, "make", "cmTC_12345", parent=script)
    for number in range(2):
        story.builder.on(number)
        begin = 20 + 4000 * number
        story.run((begin, begin + 3900), "gen", parent=make)
    story.end(8500, make)


def compiled_twice(story: Seconds, script: int) -> None:
    for begin in (10, 4010):
        story.compile((begin, begin + 3900), "a", parent=script)


def ignored_failure(story: Seconds, script: int) -> None:
    story.run((10, 4000), "tar", "x", parent=script, status=1)


WORK: list[tuple[str, Work]] = [
    ("copies", copies), ("waits", waits), ("long-command", long_command),
    ("one-after-the-other", one_by_one), ("serial-makes", serial_makes),
    ("too-few-jobs", too_few_jobs), ("compiled-twice", compiled_twice),
    ("no-compiler-cache", compiled_twice), ("ignored-failures", ignored_failure),
]  # fmt: skip


@pytest.mark.parametrize(("name", "work"), WORK, ids=[name for name, _ in WORK])
@pytest.mark.parametrize("script", ["sh build.sh", *GENERATORS])
def test_a_probe_is_found_by_no_rule(tmp_path: Path, name: str, work: Work, script: str) -> None:
    story = Seconds()
    upid = story.begin(0, *script.split())
    work(story, upid)
    story.end(9000, upid)
    story.end(9000)
    assert (name in advice(tmp_path, story)) is (script not in GENERATORS)
