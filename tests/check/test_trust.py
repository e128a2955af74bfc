# SPDX-License-Identifier: Apache-2.0
"""Make runs for a build that this user captured here, and for others only when trusted."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from backends import need_root
from traced_builds import BIN, forget_rules, found, keys, trace

from etrace.errors import EtraceError
from etrace.rules import make_database
from etrace.sandbox import run as sandbox

RECIPES = "all: a.o\na.o: a.c\n\tcat a.c b.h > a.o\n"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def build(tree: Path, command: str = "make") -> Path:
    return trace(tree, command, {"Makefile": RECIPES, "a.c": "a\n", "b.h": "b\n"})


def test_a_build_of_somebody_else_makes_nobody_run_make(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = forget_rules(build(tmp_path / "tree"))
    shutil.rmtree(state)
    monkeypatch.setattr(sandbox, "SANDBOX", tmp_path / "none")
    with pytest.raises(EtraceError, match="no mark shows that you captured this build") as caught:
        found(tree)
    assert "--trust" in caught.value.hint
    assert "cas parse --force" in caught.value.hint


def test_who_trusts_it_says_so(tmp_path: Path, state: Path) -> None:
    tree = forget_rules(build(tmp_path / "tree"))
    assert keys(tree) == ["missing-input b.h a.o"]
    shutil.rmtree(state)
    words: list[str | Path] = [BIN / "etrace", "check", tree]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 2
    assert keys(tree, is_trusted=True) == ["missing-input b.h a.o"]
    done = subprocess.run([*words, "--trust"], capture_output=True, text=True, check=False)
    assert "missing-input" in done.stdout


def test_the_database_made_again_from_the_users_own_trace_is_judged(tmp_path: Path) -> None:
    tree = build(tmp_path / "tree")
    image = tree / ".nfsdb.img"
    data = image.read_bytes()
    image.unlink()
    image.write_bytes(data + b"\0")
    subprocess.run([BIN / "cas", "parse", "-q", "--force"], cwd=tree, check=True)
    subprocess.run([BIN / "cas", "pp"], cwd=tree, check=True, capture_output=True)
    assert keys(tree) == ["missing-input b.h a.o"]


def test_ninja_is_not_run_and_needs_no_trust(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "rule r\n  command = cat a.c b.h > $out\nbuild a.o: r a.c\n"
    tree = trace(tmp_path / "tree", "ninja", {"build.ninja": rules, "a.c": "", "b.h": ""})
    shutil.rmtree(state)
    monkeypatch.setattr(sandbox, "SANDBOX", tmp_path / "none")
    assert keys(tree) == ["missing-input b.h a.o"]


def test_a_make_of_the_user_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(shutil.which("make") or "make", tmp_path / "bin/make")
    tree = build(tmp_path / "tree", f"{tmp_path}/bin/make")
    ((_, why),) = found(tree).unknown
    assert why.startswith("not run: ")


def written(place: Path, program: Path) -> bytes:
    """A trace that nobody captured: a program copied a.c to a.o, started by `program`."""
    lines = [b"INITCWD=" + os.fsencode(place)]
    make, cp = (1 << 22) + 7, (2 << 22) + 8

    def line(upid: int, text: str) -> None:
        lines.append(f"{upid},0,1,{len(lines)}!{text}".encode())

    def execute(upid: int, path: str, words: list[str]) -> None:
        size = sum(len(word) + 1 for word in words)
        line(upid, f"New_proc|argsize={size},prognameisize={len(path)},"
                   f"prognamepsize={len(path)},cwdsize={len(str(place))}")  # fmt: skip
        for text in (f"PI|{path}", f"PP|{path}", f"CW|{place}"):
            line(upid, text)
        for number, word in enumerate(words):
            line(upid, f"A[{number}]{word}")
        line(upid, "End_of_args|")

    execute(make, str(program), ["make"])
    line(make, "SysClone|flags=17")
    line(make, f"SchedFork|pid={cp}")
    execute(cp, "/bin/cp", ["cp", "a.c", "a.o"])
    for name, flags in (("a.c", 0), ("a.o", 577)):
        path = f"{place}/{name}"
        line(cp, f"Open|fnamesize={len(path)},forigsize={len(path)},flags={flags},mode=0,fd=3")
        for text in (f"FN|{path}", f"FO|{path}", "Close|fd=3"):
            line(cp, text)
    line(cp, "Exit|status=0")
    line(make, "Exit|status=0")
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize(
    ("target", "why"),
    [("/usr/bin/perl", "its name is neither make nor gmake"), ("/nowhere", "does not exist"),
     ("script", "does not belong to root"), ("/usr/bin/make", "")],
)  # fmt: skip
def test_what_a_name_leads_to_decides(tmp_path: Path, target: str, why: str) -> None:
    (tmp_path / "att").mkdir()
    (tmp_path / "script").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "script").chmod(0o755)
    if os.geteuid() == 0:
        os.chown(tmp_path / "script", 12345, -1)
    (tmp_path / "att/make").symlink_to(tmp_path / target if target == "script" else target)
    (tmp_path / "Makefile").write_text("all: a.o\na.o: a.c\n\tcp a.c a.o\n")
    (tmp_path / "a.c").touch()
    (tmp_path / ".nfsdb").write_bytes(written(tmp_path, tmp_path / "att/make"))
    subprocess.run([BIN / "cas", "parse", "-q"], cwd=tmp_path, check=True)
    subprocess.run([BIN / "cas", "pp"], cwd=tmp_path, check=True, capture_output=True)
    with pytest.raises(EtraceError, match="no mark shows"):
        found(tmp_path)
    result = found(tmp_path, is_trusted=True)
    assert not (tmp_path / "ran").exists()
    if why:
        ((_, said),) = result.unknown
        assert why in said
    else:
        assert not result.unknown  # it was asked


@pytest.mark.root
def test_root_does_not_read_makefiles_of_others(tmp_path: Path) -> None:
    need_root()
    tree = forget_rules(build(tmp_path / "tree"))
    os.chown(tree / "Makefile", 12345, 12345)
    ((_, why),) = found(tree).unknown
    assert why.startswith("Makefile is not read: root's make reads only plain files")
    os.chown(tree, 12345, 12345)
    with pytest.raises(EtraceError, match=r"another user"):
        found(tree)


@pytest.mark.root
def test_root_does_not_read_the_rules_of_ninja_of_others(tmp_path: Path) -> None:
    need_root()
    rules = "include more.ninja\nrule r\n  command = cat a.c b.h > $out\nbuild a.o: r a.c\n"
    sources = {"build.ninja": rules, "more.ninja": "", "a.c": "", "b.h": ""}
    tree = trace(tmp_path / "tree", "ninja", sources)
    assert keys(tree) == ["missing-input b.h a.o"]
    os.chown(forget_rules(tree) / "more.ninja", 12345, 12345)
    ((_, why),) = found(tree).unknown
    assert "root does not read it" in why


def test_forged_messages_of_make_change_no_judgement(tmp_path: Path) -> None:
    tree = forget_rules(build(tmp_path / "tree"))
    forged = (
        "$(warning *** Error 127)\n$(info make: *** [x] Error 127)\n"
        "$(info # Make data base, printed on x)\n"
        "$(info # Files)\nX := $(shell echo)\n"
    )
    (tree / "Makefile").unlink()
    (tree / "makefile").write_text(forged + RECIPES)
    ((_, why),) = found(tree).unknown
    assert "$(shell)" in why


def test_long_lines_of_make_cost_no_more_than_their_length(tmp_path: Path) -> None:
    tree = forget_rules(build(tmp_path / "tree"))
    stars, marks = "*** " * 40_000, "(a) " * 200
    (tree / "Makefile").write_text(
        f"$(warning {stars})\n$(info Reading makefile 'x' {marks})\n" + RECIPES
    )
    assert keys(tree) == ["missing-input b.h a.o"]


DATA_BASE = """\
# Make data base, printed on x
# Files

a:
#  Implicit rule search has not been done.
#  File has not been updated.
#  recipe to execute (from 'Makefile', line 2):
"""


def test_long_recipes_are_joined_once() -> None:
    text = DATA_BASE + "\tx \\\n" * 200_000 + "\ty\n\n"
    began = time.process_time()
    rules = make_database.read(text, Path("/w"))
    assert rules is not None
    assert rules.rules["a"].recipe == ["x " * 200_000 + "y"]
    assert time.process_time() - began < 20  # joined one by one they take minutes


@pytest.mark.parametrize(
    "command",
    ["make -f - < Makefile", "make -sf- < Makefile", "cat Makefile | make --file=/dev/stdin"],
)
def test_a_makefile_of_standard_input_is_said_to_be_gone(tmp_path: Path, command: str) -> None:
    tree = trace(tmp_path / "tree", command, {"Makefile": RECIPES, "a.c": "a\n", "b.h": "b\n"})
    ((_, why),) = found(tree).unknown
    assert why == "it read a makefile from standard input, which nothing keeps"
