# SPDX-License-Identifier: Apache-2.0
"""Slices, lanes and counters of small builds."""

from __future__ import annotations

from pathlib import Path

import pytest
from databases import database_of
from timing.builds import US, a_pipeline, two_jobs_with_usage, two_objects_and_a_link

from etrace.timeline.counters import Counter, counters
from etrace.timeline.slices import Lanes, slices

TREE = [
    (0, 0, 1210, "make prog"),
    (0, 100, 400, "gcc a.c"),
    (0, 400, 1000, "gcc b.c"),
    (0, 1000, 1200, "ld prog"),
]


@pytest.mark.parametrize(("lanes", "expected"), [(Lanes.TREE, TREE), (Lanes.PACKED, TREE[1:])])
def test_jobs_one_after_the_other_are_on_one_lane(
    tmp_path: Path, lanes: Lanes, expected: list[tuple[int, int, int, str]]
) -> None:
    image = database_of(tmp_path, two_objects_and_a_link())
    found = [(s.lane, s.start_ns // US, s.end_ns // US, s.name) for s in slices(image, lanes)]
    assert found == expected


def test_what_runs_at_once_has_lanes_of_its_own(tmp_path: Path) -> None:
    image = database_of(tmp_path, a_pipeline())
    tree = [(s.lane, s.name) for s in slices(image, Lanes.TREE)]
    assert tree == [(0, "sh -c gen | sort"), (0, "gen"), (1, "sort")]
    packed = [(s.lane, s.name) for s in slices(image, Lanes.PACKED)]
    assert packed == [(0, "gen"), (1, "sort")]


def test_a_slice_says_its_command(tmp_path: Path) -> None:
    image = database_of(tmp_path, two_objects_and_a_link())
    details = [s.details for s in slices(image, Lanes.PACKED)]
    assert details[0] == (("command", "gcc -c a.c"), ("pid", 2))


def test_without_usage_only_running_commands_are_counted(tmp_path: Path) -> None:
    image = database_of(tmp_path, a_pipeline())
    points = [(0, 0.0), (100 * US, 1.0), (110 * US, 2.0), (700 * US, 1.0), (800 * US, 0.0)]
    assert list(counters(image)) == [Counter("running commands", "", points[1:])]


def test_usage_is_spread_over_the_time_of_its_command(tmp_path: Path) -> None:
    found = {
        each.name: (each.unit, [(time_ns // US, value) for time_ns, value in each.points])
        for each in counters(database_of(tmp_path, two_jobs_with_usage()))
    }
    assert found == {
        "running commands": ("", [(100, 1.0), (300, 2.0), (500, 1.0), (700, 0.0)]),
        "CPUs in use": (
            "", [(0, 0.05), (100, 1.05), (300, 1.55), (500, 0.55), (700, 0.05), (1000, 0.0)],
        ),
        "memory, at most": (
            "bytes",
            [(0, 500.0), (100, 1_000_500.0), (300, 3_000_500.0), (500, 2_000_500.0),
             (700, 500.0), (1000, 0.0)],
        ),
        # of ld and make it is not known: 4,000 bytes in 400 us
        "read by calls": ("bytes/s", [(100, 1e7), (500, 0.0)]),
        "written by calls": ("bytes/s", [(100, 0.0), (300, 2e7), (500, 2e7), (700, 0.0)]),
    }  # fmt: skip
