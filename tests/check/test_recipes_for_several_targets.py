# SPDX-License-Identifier: Apache-2.0
"""Recipes that make runs once for each of several targets, and that write all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from traced_builds import keys, trace

BOTH = "all: a b\na b: in\n\techo ran; sleep 0.2; cat in > a; cat in > b\n"


def ran(tree: Path) -> int:
    """Return how often the recipe runs with two jobs."""
    for name in ("a", "b"):
        (tree / name).unlink(missing_ok=True)
    done = subprocess.run(["make", "-j2"], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.splitlines().count("ran")


@pytest.mark.parametrize("command", ["make", "make -j2"])
@pytest.mark.parametrize(
    "rules",
    [
        BOTH,
        BOTH.replace("cat in", "cat $<").replace("sleep", ": $@; sleep"),
        BOTH.replace("sleep 0.2", "sleep 0.2\n\tcat in > t").replace("cat in > a", "cat t > a"),
        BOTH.replace("a b:", "a: in\nb: in\na b:"),
    ],
)
def test_a_recipe_that_runs_for_each_of_its_targets(
    tmp_path: Path, command: str, rules: str
) -> None:
    trace(tmp_path, command, {"Makefile": rules, "in": ""})
    found = [key for key in keys(tmp_path) if key.startswith("two-writers")]
    assert {key.split(" ")[1] for key in found} >= {"b"}
    assert ran(tmp_path) == 2


@pytest.mark.parametrize("command", ["make", "make -j2"])
@pytest.mark.parametrize(
    "rules",
    [
        BOTH.replace("a b: in", "a b &: in"),
        BOTH + "b: a\n",
        BOTH + ".NOTPARALLEL:\n",
        BOTH.replace("a b: in", "%: %.in").replace("all: a b", "all: a").replace("in >", "a.in >"),
        "all: a b\na b: in\n\techo ran; cat in > $@\n",
        # automake's BUILT_SOURCES: the first make asks for one of them only
        BOTH.replace("all: a b", "all: a\n\t$(MAKE) both\nboth: a b"),
        "all: a b\na: in\n\techo ran; cat in > a; cat in > b\nb: a ;\n",
    ],
)
def test_a_recipe_that_runs_once_or_for_its_own_target(
    tmp_path: Path, command: str, rules: str
) -> None:
    trace(tmp_path, command, {"Makefile": rules, "in": "", "a.in": ""})
    assert [key for key in keys(tmp_path) if key.startswith("two-writers")] == []


def test_a_make_that_runs_for_each_target(tmp_path: Path) -> None:
    rules = "all: a b\na b:\n\t$(MAKE) -C s\n"
    sub = "out: in\n\tsleep 0.3; cat in > out; touch ../a ../b\n"
    trace(tmp_path, "make -j2", {"Makefile": rules, "s/Makefile": sub, "s/in": ""})
    assert "two-writers s/out b" in keys(tmp_path)
