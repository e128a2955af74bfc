# SPDX-License-Identifier: Apache-2.0
"""For which targets the lines of recipes run, and faults of lines that write no target."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from traced_builds import found, keys, make, trace

H = {"h.h": "#define H 0\n", "main.c": '#include "h.h"\nint main(void) { return H; }\n'}


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("make", "prog: main.c\n\tgcc -c main.c\n\tgcc -o prog main.o\n"),
        ("make", "prog: main.c\n\t$(CC) $(CFLAGS) -c $<\n\t$(CC) -o $@ main.o\n"),
        ("make -j2", "prog: main.c\n\t$(CC) -c $^\n\t@echo made\n\t$(CC) $(X) main.o -o $@\n"),
        ("make", "prog: main.c\n\t$(compile)\n\t$(CC) -o $@ main.o\ncompile = $(CC) -c $<\n"),
        ("make", ("define compile\n$(CC) -c $<\n$(CC) -o $@ main.o\nendef\n"
                 "prog: main.c\n\t$(compile)\n")),
        ("make", ("prog: main.c\n\t$(CC) -c $<\n\t$(CC) -o $@ main.o\nSHELL = /bin/bash\n"
                 ".SHELLFLAGS = -e -c\n")),
    ],
)  # fmt: skip
def test_a_line_that_writes_no_target_belongs_to_its_recipe(
    tmp_path: Path, command: str, rules: str
) -> None:
    result = found(trace(tmp_path, command, {"Makefile": f"all: prog\n{rules}", **H}))
    assert [each.key for each in result.faults] == ["missing-input h.h prog"]
    assert result.n_known == result.n_recipes
    os.utime(tmp_path / "h.h", (2e9, 2e9))
    assert make(tmp_path, "-q") == 0


TWO = "all: x y\nx: a\n\tsort a > {}\n\tsort {} > x\ny: a\n\tsort a > {}\n\tsort {} > y\n"


@pytest.mark.parametrize("command", ["make", "make -j2"])
@pytest.mark.parametrize("name", ["tmp", "/tmp/etrace-test-shared", "sub/tmp"])
def test_a_file_of_two_lines_of_two_recipes(tmp_path: Path, command: str, name: str) -> None:
    makefile = TWO.replace("{}", name)
    (tmp_path / "sub").mkdir()
    trace(tmp_path, command, {"Makefile": makefile, "a": "1\n"})
    shared = [key for key in keys(tmp_path) if key.startswith(("two-writers", "shared"))]
    assert [key.rpartition(" ")[2] for key in shared] == ["y"]
    for each in ("x", "y"):
        (tmp_path / each).unlink()
    trace(tmp_path, command, {"Makefile": makefile.replace("y: a", "y: a x")})
    assert [key for key in keys(tmp_path) if key.startswith(("two-writers", "shared"))] == []


@pytest.mark.parametrize("command", ["make", "make -j2"])
def test_a_temporary_of_equal_lines(tmp_path: Path, command: str) -> None:
    rules = TWO.replace("> x", "> x\n\trm tmp").replace("> y", "> y\n\trm -f tmp")
    rules = rules.replace("{}", "tmp").replace("sort tmp > x", "sleep 0.1; sort tmp > x")
    rules = rules.replace("sort tmp > y", "sleep 0.1; sort tmp > y")
    trace(tmp_path, f"{command} -k || :", {"Makefile": rules, "a": "1\n"})
    assert [key.split(" ")[0] for key in keys(tmp_path)] == ["shared-temporary"]


def test_a_temporary_with_a_name_of_its_own_over_lines(tmp_path: Path) -> None:
    rules = "all: x y\nx y: a\n\tsort a > $@.tmp\n\tsort $@.tmp > $@\n\trm $@.tmp\n"
    result = found(trace(tmp_path, "make -j2", {"Makefile": rules, "a": "1\n"}))
    assert list(result.faults) == []
    assert result.n_known == result.n_recipes == 6


@pytest.mark.parametrize(
    "rules",
    [
        "lib prog:\n\t$(MAKE) -C $@\n",
        "lib:\n\t$(MAKE) -C lib\nprog:\n\tcd prog && $(MAKE)\n",
        "lib prog: %: FORCE\n\t+cd $* && $(MAKE) $(X)\nFORCE:\n",
        "lib prog: $(X)\n\t@echo in $@; $(MAKE) -C $(@F) all\n",
    ],
)
def test_lines_of_phony_targets_are_known(tmp_path: Path, rules: str) -> None:
    sub = "all: x\nx: a\n\tcat a > x\n"
    sources = {"lib/Makefile": sub, "prog/Makefile": sub, "lib/a": "", "prog/a": ""}
    makefile = f"all: lib prog\n{rules}.PHONY: all lib prog\n"
    result = found(trace(tmp_path, "make", {"Makefile": makefile, **sources}))
    assert list(result.faults) == []
    assert result.n_known == result.n_recipes == 4


@pytest.mark.parametrize("line", ["cat h.h", "@cat h.h > /dev/null", "-grep -q H h.h"])
def test_a_line_that_only_prints_has_no_inputs(tmp_path: Path, line: str) -> None:
    rules = f"prog: main.c\n\t{line}\n\techo > $@\n"
    result = found(trace(tmp_path, "make", {"Makefile": rules, **H}))
    assert list(result.faults) == []
    assert result.n_known == result.n_recipes == 2


@pytest.mark.parametrize("command", ["make", "make -j2"])
def test_a_line_that_two_rules_have_may_be_of_either(tmp_path: Path, command: str) -> None:
    """lz4's: the target that it writes is not the one that it runs for."""
    rules = "all: p-release\np p-release:\n\t$(MAKE) -C s $@\n\tcp s/p .\n.PHONY: p-release\n"
    sources = {"Makefile": rules, "s/Makefile": "p p-release: in\n\tcp in p\n", "s/in": ""}
    trace(tmp_path, command, sources)
    assert keys(tmp_path) == []


def test_a_line_with_names_that_are_known_is_of_that_target(tmp_path: Path) -> None:
    """It could also be a line of the members: only the library is known of that."""
    rules = (
        "all: l.a s\nl.a: l.a(a.o)\n(%.o): %.o\n\t$(AR) $(ARFLAGS) l.a $%\na.o: a.c\n"
        "s:\n\tnm l.a > $@\n"
    )
    trace(tmp_path, "make", {"Makefile": rules, "a.c": "int a;\n"})
    assert keys(tmp_path) == ["missing-order l.a s"]


@pytest.mark.parametrize(
    "recipe", ["\tcp in {0}\n\techo {1} > log\n", "\techo {1} > log\n\tcp in {0}\n"]
)
def test_a_line_beside_a_known_one_is_of_that_recipe(tmp_path: Path, recipe: str) -> None:
    """By its text it could be of the other recipe, too, but make runs nothing in between."""
    rules = "X = y\nall: p q\n" + "".join(
        f"{each}: in\n{recipe.format(each, value)}" for each, value in (("p", "$X"), ("q", "$Xy"))
    )
    trace(tmp_path, "make", {"Makefile": rules, "in": ""})
    assert keys(tmp_path) == ["two-writers log q"]
