# SPDX-License-Identifier: Apache-2.0
"""Directories, temporary files, undeclared outputs and notes, of real runs of make and ninja."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from traced_builds import BIN, found, keys, trace


def of(tree: Path, makefile: str, **sources: str) -> list[str]:
    """Trace a make and return its faults but those of inputs."""
    trace(tree, "make", {"Makefile": makefile, "a": "1\n", "b": "2\n", **sources})
    return [key for key in keys(tree) if not key.startswith("missing-input")]


# ---- missing-directory ----

APART = "all: d d/x\nd:\n\tmkdir d\nd/x: a\n\tcat a > d/x\n"


def test_a_directory_that_another_rule_makes_is_missing(tmp_path: Path) -> None:
    assert of(tmp_path, APART) == ["missing-directory d d/x"]
    (fault,) = found(tmp_path).faults
    assert (fault.made_for, fault.remedy) == (("d",), "d/x: | d")
    subprocess.run(["rm", "-r", "d"], cwd=tmp_path, check=True)
    done = subprocess.run(["make", "d/x"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "makefile",
    [
        APART.replace("d/x: a", "d/x: a | d"),
        "all: d d/x\nd m:\n\tmkdir -p d\n\ttouch m\nd/x: a m\n\tcat a > d/x\n",
        APART.replace("\tcat", "\t@test -d d || mkdir d\n\tcat"),
        APART.replace("\tcat", "\tmkdir -p d; cat"),
        APART + ".NOTPARALLEL:\n",
        "all: d/x\nd/x: a\n\tmkdir -p d\n\tcat a > d/x\n",
        "all: d/x d/y\nd/x d/y: a\n\tmkdir -p $(@D)\n\tcat a > $@\n",
        "all: m d/x\nm:\n\tmkdir -p d\n\ttouch m\nd/x: a m\n\tcat a > d/x\n",
    ],
)
def test_a_directory_that_is_waited_for_or_made_again_is_not_missing(
    tmp_path: Path, makefile: str
) -> None:
    assert [key for key in of(tmp_path, makefile) if "directory" in key] == []


@pytest.mark.parametrize("command", ["mkdir -p -m 755 d/e", "install -d d/e", "mkdir d d/e"])
def test_directories_above_and_other_programs_count(tmp_path: Path, command: str) -> None:
    makefile = f"all: m d/x\nm:\n\t{command}\n\ttouch m\nd/x: a\n\tcat a > d/x\n"
    assert of(tmp_path, makefile) == ["missing-directory d d/x"]
    assert found(tmp_path).faults[-1].remedy == "d/x: | m"


def test_a_script_that_makes_a_directory_where_it_is_not_there(tmp_path: Path) -> None:
    makefile = "all: d/x d/y\nd/x: a\n\tsh m.sh x\nd/y: a\n\tsh m.sh y\n"
    script = "test -d d || mkdir d\ncat a > d/$1\n"
    assert of(tmp_path, makefile, **{"m.sh": script}) == []


def test_a_directory_that_was_there_is_not_missing(tmp_path: Path) -> None:
    makefile = "all: m d/x\nm:\n\tmkdir -p d; touch m\nd/x: a\n\tcat a > d/x\n"
    assert of(tmp_path, makefile, **{"d/kept": ""}) == []


def test_a_directory_that_a_script_makes_before_make_is_not_missing(tmp_path: Path) -> None:
    makefile = "all: m d/x\nm:\n\tmkdir -p d/sub; touch m\nd/x: a\n\tcat a > d/x\n"
    trace(tmp_path, "mkdir -p d; make", {"Makefile": makefile, "a": ""})
    assert keys(tmp_path) == []


@pytest.mark.parametrize(
    "makefile",
    [
        (
            "all: d/x\nMISSING := $(filter-out $(wildcard d),d)\nd:\n\tmkdir d\n"
            "d/x: a $(MISSING)\n\tcat a > d/x\n"
        ),
        (
            "all: d/x\nMISSING := $(filter-out $(wildcard d),d)\nd e:\n\tmkdir $@\n"
            "d/x: a | $(MISSING)\n\tcat a > d/x\n"
        ),
    ],
)
def test_rules_that_look_at_what_is_there_were_others_then(tmp_path: Path, makefile: str) -> None:
    assert of(tmp_path, makefile) == []
    subprocess.run(["rm", "-r", "d"], cwd=tmp_path, check=True)
    assert subprocess.run(["make", "d/x"], cwd=tmp_path, check=False).returncode == 0


def test_an_order_that_was_declared_then_is_not_missing(tmp_path: Path) -> None:
    makefile = "all: x\nNEW := $(if $(wildcard g),,g)\ng: a\n\tcp a g\nx: $(NEW)\n\tcp g x\n"
    assert of(tmp_path, makefile) == []


def test_ninja_makes_the_directories_of_outputs(tmp_path: Path) -> None:
    rules = "rule r\n  command = $do\nbuild m: r\n  do = mkdir -p d e && touch m\n"
    rules += "build d/x: r\n  do = cat a > d/x\nbuild y: r\n  do = cat a > e/y; touch y\n"
    trace(tmp_path, "ninja -j1", {"build.ninja": rules, "a": ""})
    (fault,) = (each for each in found(tmp_path).faults if each.id == "missing-directory")
    assert (fault.key, fault.remedy) == ("missing-directory e y", "build y: ... || m")


# ---- shared-temporary ----

SHARED = "all: x y\nx: a\n\tcat a > t; cat t > x; rm t\ny: b\n\tcat b > t; cat t > y; rm t\n"


def test_a_temporary_file_of_two_recipes(tmp_path: Path) -> None:
    assert of(tmp_path, SHARED) == ["shared-temporary t y"]
    subprocess.run(["rm", "x", "y"], cwd=tmp_path, check=True)
    assert of(tmp_path, SHARED.replace("y: b", "y: b x")) == []


def test_a_temporary_file_with_a_name_of_its_own_is_not_shared(tmp_path: Path) -> None:
    assert of(tmp_path, SHARED.replace(" t", " t.$@").replace("t;", "t.$@;")) == []


# ---- undeclared-output ----

BESIDE = "all: x y\nx: a\n\tcp a beside; cp a x\ny: x\n\tcat beside > y\n"


def test_an_output_that_no_rule_names_but_another_reads(tmp_path: Path) -> None:
    assert of(tmp_path, BESIDE) == ["undeclared-output beside y"]
    (fault,) = (each for each in found(tmp_path).faults if each.id == "undeclared-output")
    assert fault.remedy == "beside: x ;"
    (tmp_path / "beside").unlink()
    (tmp_path / "y").unlink()
    done = subprocess.run(["make"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2


def test_an_output_that_a_rule_names_or_nobody_reads_is_right(tmp_path: Path) -> None:
    assert of(tmp_path, BESIDE.replace("y: x", "y: x beside") + "beside: x ;\n") == []
    subprocess.run(["rm", "x", "y"], cwd=tmp_path, check=True)
    assert of(tmp_path, BESIDE.replace("cat beside", "cat x")) == []


# ---- notes ----

NOTES = """\
all: x y z
x: a b sub
\tcat a > x
y: a
\tdate > y; cat a >> y; head -c1 /dev/urandom > r; cat $$HOME/.setting >> y
z: a
\tgit ls-remote . > z 2>/dev/null || :; date -r a > d; git --version > g; cat a > z
sub: a
\tcat a > sub
"""


def test_notes_are_shown_on_demand_and_do_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".setting").write_text("1\n")
    monkeypatch.setenv("HOME", str(home))
    tree = tmp_path / "tree"
    tree.mkdir()
    assert of(tree, NOTES) == []
    notes = {key.replace(os.path.relpath("/", tree), "") for key in keys(tree, has_notes=True)}
    assert notes == {
        "home ../home/.setting y", "never-read b x", "never-read sub x",
        "network /usr/bin/git z", "time-or-random /dev/urandom y",
        "time-or-random /usr/bin/date y",
    }  # fmt: skip
    for options in ([], ["--all"]):
        done = subprocess.run(
            [BIN / "etrace", "check", *options],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        assert ("drop        x: b" in done.stdout) == bool(options)
