# SPDX-License-Identifier: Apache-2.0
"""The critical path by phase and program."""

from __future__ import annotations

from pathlib import Path

from databases import database_of
from libetrace.image.file import Image
from timing.builds import FIRST, LINK, MAKE, SECOND, US, Story, two_objects_and_a_link

from etrace.query.phases import Phases
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.spec.database import NONE
from etrace.timing.critical_path import find_critical_path
from etrace.timing.path_groups import group_path


def groups(image: Image) -> list[tuple[str, str, int, int, str]]:
    """Return groups as (phase, program, steps, us, longest step)."""
    labels = Labels(image)
    found = group_path(find_critical_path(image), Phases(Commands(image), labels), labels)
    return [
        (
            labels.of(each.phase) if each.phase != NONE else "",
            each.program,
            each.n_steps,
            each.path_ns // US,
            labels.of(each.longest.execution),
        )
        for each in found
    ]


def test_steps_of_one_program_in_one_phase_are_one_group(tmp_path: Path) -> None:
    assert groups(database_of(tmp_path, two_objects_and_a_link())) == [
        ("make prog", "gcc", 1, 600, "gcc b.c"),
        ("make prog", "ld", 1, 200, "ld prog"),
        ("make prog", "make", 2, 110, "make prog"),
    ]


def test_a_program_in_two_phases_is_two_groups(tmp_path: Path) -> None:
    story, last = Story(), 5 << 22 | 5
    story.at(0).exec(MAKE, "/bin/sh", ["sh", "-c", "./configure && make"])
    story.at(10).fork(MAKE, FIRST).exec(FIRST, "/bin/sh", ["sh", "./configure"])
    story.job(FIRST, SECOND, (20, 320), ["gcc", "conftest.c"])
    story.at(330).exit(FIRST)
    story.at(340).fork(MAKE, LINK).exec(LINK, "/usr/bin/make", ["make"])
    story.job(LINK, last, (350, 550), ["gcc", "a.c"])
    story.at(560).exit(LINK)
    story.at(570).exit(MAKE)
    found = groups(database_of(tmp_path, story.builder.trace()))
    assert [each[:4] for each in found if each[1] != "sh"] == [
        ("sh configure", "gcc", 1, 300), ("make", "gcc", 1, 200), ("make", "make", 2, 20)
    ]  # fmt: skip
    assert [each[0] for each in found if each[1] == "sh"] == ["", "sh configure"]
