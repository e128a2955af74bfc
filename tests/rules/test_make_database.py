# SPDX-License-Identifier: Apache-2.0
"""What make prints of its rules; what it makes again after a change is the oracle."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import other_makes
import pytest

from etrace.rules import make_database
from etrace.rules.rule import Rules

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))} | {
    "LC_ALL": "C"
}
SOURCES = ("s0", "s 1", "s:2", "s3%", "s#4", "s5")
RECIPE = "\t@echo '$@' >> log; touch '$@'\n"


class Make:
    """A GNU make."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def run(self, tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it in a tree."""
        return subprocess.run(
            [*self.words, *words], cwd=tree, env=ENVIRONMENT, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def rules(self, tree: Path, makefile: str, *words: str) -> Rules:
        """Return the rules of a makefile, as it prints them."""
        (tree / "Makefile").write_text(makefile)
        rules = make_database.read(self.run(tree, "-pnk", *words).stdout, tree)
        assert rules is not None
        return rules


#: 4.3 is Debian 12's; 4.4.1 is Debian 13's
@pytest.fixture(params=["make", pytest.param("trixie", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest) -> Make:
    """Return a make: the machine's, or that of another suite."""
    return Make(*(["make"] if request.param == "make" else other_makes.words_of(request.param)))


def escaped(name: str) -> str:
    """Return a name as a makefile has it."""
    for character in " #:":
        name = name.replace(character, f"\\{character}")
    return name.replace("$", "$$")


def test_names_with_blanks_colons_and_other_signs(tmp_path: Path, make: Make) -> None:
    names = ["a b", "c:d", "e%f", "g#h", "i$j", "k  l", "x:y z", "o", "p q r"]
    needed = " ".join(map(escaped, names))
    own = "".join(f"{escaped(name)}:\n\ttouch '{name}'\n" for name in names)
    rules = make.rules(tmp_path, f"all: {needed}\nlast: {escaped('a b')} | o\n{own}", "all")
    assert rules.rules["all"].needs == tuple(names)
    assert (rules.rules["last"].needs, rules.rules["last"].order_only) == (("a b",), ("o",))
    assert rules.rules["a b"].recipe == ["touch 'a b'"]
    assert all(rules.rules[name].is_target for name in names)


def test_a_line_with_two_readings_has_the_names_of_both(tmp_path: Path, make: Make) -> None:
    rules = make.rules(tmp_path, "x: a b c\ny: a\\ b\na b c a\\ b: ; touch $@\n")
    assert set(rules.rules["x"].needs) == {"a", "b", "c", "a b"}


def test_a_double_colon_has_several_entries(tmp_path: Path, make: Make) -> None:
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    rules = make.rules(tmp_path, "o:: a\n\techo 1 > $@\no:: b | a\n\techo 2 >> $@\n")
    rule = rules.rules["o"]
    assert (rule.needs, rule.order_only, rule.is_always) == (("a", "b"), ("a",), False)
    assert rule.recipe == ["echo 1 > $@", "echo 2 >> $@"]
    assert make.rules(tmp_path, "o:: a\n\techo 1 > $@\no::\n\techo 2 >> $@\n").rules["o"].is_always


def test_variables_of_a_target_are_neither_rules_nor_recipes(tmp_path: Path, make: Make) -> None:
    makefile = """\
define LINES
# Files

fake: dep
#  Implicit rule search has not been done.
endef
x: V = a: b | c
x: private override W := $(LINES)
x: define = y
x: s
\techo $(V)
s: ; touch s
"""
    rules = make.rules(tmp_path, makefile.replace("#  Imp", "# Imp"))
    assert "fake" not in rules.rules
    assert rules.rules["x"].needs == ("s",)
    assert rules.rules["x"].recipe == ["echo $(V)"]


def test_lines_of_a_recipe(tmp_path: Path, make: Make) -> None:
    makefile = """\
x:
\techo one \\
\t  two; \\

\t@echo three \\\\
\t-echo \\
four
y: ; @:
z: ;
w:
\t@# nothing
"""
    rules = make.rules(tmp_path, makefile, "x", "y", "z", "w").rules
    assert rules["x"].recipe == ["echo one two;", "@echo three \\\\", "-echo four"]
    assert [rules[name].has_recipe for name in "xyzw"] == [True, False, False, False]


def test_another_sign_before_recipes(tmp_path: Path, make: Make) -> None:
    rules = make.rules(tmp_path, ".RECIPEPREFIX = >\nx: y\n>touch x\ny:\n>touch \\\n>  y\n")
    assert rules.rules["x"].recipe == ["touch x"]
    assert rules.rules["y"].recipe == ["touch y"]


def test_a_recipe_is_known_whether_its_target_is_up_to_date_or_not(
    tmp_path: Path, make: Make
) -> None:
    """make prints automatic variables between a target and its recipe once it expanded this."""
    makefile = "x: V = 1\nx: s\n\ttouch x\ns: ; touch s\n"
    before = make.rules(tmp_path, makefile).rules["x"]
    make.run(tmp_path)
    after = make.rules(tmp_path, makefile).rules["x"]
    assert before.recipe == after.recipe == ["touch x"]


def test_targets_that_one_recipe_makes(tmp_path: Path, make: Make) -> None:
    makefile = "all: a c.x\na b &: s\n\ttouch a b\n%.x %.z: s\n\ttouch $*.x $*.z\ns: ; touch s\n"
    rules = make.rules(tmp_path, makefile).rules
    assert (rules["a"].also, rules["b"].also, rules["c.x"].also) == (("b",), ("a",), ("c.z",))


def test_a_file_that_need_not_be_there(tmp_path: Path, make: Make) -> None:
    (tmp_path / "a.y").touch()
    rules = make.rules(tmp_path, "%.c: %.y\n\tcp $< $@\n%.o: %.c\n\tcp $< $@\nall: a.o\n", "all")
    assert rules.rules["a.c"].is_intermediate
    make.run(tmp_path, "all")
    assert not (tmp_path / "a.c").exists()
    own = rules.path("a.o")
    assert not rules.runs_always([own])
    assert rules.needs([own], [rules.path("a.y")], order_only=False)


def test_prerequisites_that_are_expanded_twice(tmp_path: Path, make: Make) -> None:
    makefile = (
        ".SECONDEXPANSION:\nL = s t\nx: $$(L) | $$(subst x,o,$$@)\n\ttouch x\ns t o: ; touch $@\n"
    )
    rule = make.rules(tmp_path, makefile).rules["x"]
    assert (rule.needs, rule.order_only) == (("s", "t"), ("o",))


def test_directory_and_makefiles(tmp_path: Path, make: Make) -> None:
    tree = tmp_path / "a $ b"
    tree.mkdir()
    (tree / "more files.mk").touch()
    rules = make.rules(tree, "I := more\\ files.mk\ninclude $(I)\nx: ; touch x\n")
    assert rules.directory == tree
    assert rules.makefiles == {str(tree / "Makefile"), str(tree / "more files.mk")}


# ---- .WAIT and .NOTPARALLEL: what make 4.4.1 prints of them ----

REMARKS = "#  Implicit rule search has not been done.\n#  File has not been updated.\n"
LINES = ("all: a .WAIT b | c .WAIT d", "a:", "b: e", "c:", "d:", "e:")


def printed(version: str, *lines: str) -> Rules:
    """Return the rules of files that a version of make prints so."""
    text = (
        f"# Make data base, printed on x\n\n# Variables\n\n# default\nMAKE_VERSION := {version}\n"
    )
    text += "# variable set hash-table stats:\n\n# Files\n"
    rules = make_database.read(
        text + "".join(f"\n{line}\n{REMARKS}" for line in lines), Path("/nowhere")
    )
    assert rules is not None
    return rules


def waits(rules: Rules, one: str, other: str) -> bool:
    """Whether one target is begun after another is made."""
    return rules.needs([rules.path(one)], [rules.path(other)], order_only=True)


def test_wait_orders_what_is_on_both_sides_of_it() -> None:
    rules = printed("4.4.1", *LINES)
    assert not rules.is_serial
    assert rules.rules["all"].needs == ("a", "b")
    pairs = {x + y for x in "abcde" for y in "abcde" if x != y and waits(rules, x, y)}
    assert pairs == {"ba", "be", "ea", "ca", "da", "db", "dc", "de"}
    assert not rules.needs([rules.path("b")], [rules.path("a")], order_only=False)


def test_make_prints_waits_so(tmp_path: Path, make: Make) -> None:
    text = ".NOTPARALLEL: x\nx: c d\nall: a .WAIT b | c .WAIT d\na b c d: ; touch $@\n"
    rules = make.rules(tmp_path, text, "x", "all")
    is_new = rules.rules["all"].needs == ("a", "b")
    assert is_new == ("4.4" in make.run(tmp_path, "--version").stdout)
    assert rules.is_serial != is_new
    assert (waits(rules, "b", "a"), waits(rules, "d", "c")) == (is_new, is_new)


def test_before_4_4_wait_is_a_name() -> None:
    rules = printed("4.3", *LINES, ".WAIT:")
    assert rules.rules["all"].needs == ("a", ".WAIT", "b")
    assert not waits(rules, "b", "a")


def test_notparallel_is_for_all_unless_it_has_prerequisites() -> None:
    assert printed("4.4", ".NOTPARALLEL:").is_serial
    assert printed("4.3", ".NOTPARALLEL: x", "x: a b").is_serial
    rules = printed("4.4", ".NOTPARALLEL: x", "x: a .WAIT b", "y: c d")
    assert not rules.is_serial
    assert waits(rules, "b", "a")
    assert not waits(rules, "d", "c")


# ---- what make does after a change ----


def _makefile(some: random.Random, tree: Path) -> tuple[str, list[str], list[str]]:
    """Return a makefile, its targets that are made, and those that are there without a recipe."""
    lines, names, made, kept, others = list[str](), list[str](), list[str](), list[str](), ""
    for number in range(some.randint(3, 8)):
        base = some.choice([f"t{number}", f"t {number}", f"d/t{number}", f"t:{number}"])
        name = base
        if some.random() < 0.3:
            name = some.choice([f"{tree}/{base}", f"d/../{base}"])
        own = [*SOURCES, *names]
        needs = some.sample(own, some.randint(0, 3))
        after = some.sample(own, some.randint(0, 1))
        line = " ".join(map(escaped, needs))
        whole = f"{escaped(name)}: {line}" + "".join(f" | {escaped(each)}" for each in after)
        kind = some.choice(
            ["normal", "normal", "kept", "blank", "double", "grouped", "second", "pattern"]
        )
        if kind in ("kept", "blank"):
            lines.append(whole + (some.choice([" ;", " ; @:"]) if kind == "blank" else ""))
            kept += [name] if some.random() < 0.7 else []
        else:
            made.append(name)
        if kind == "normal":
            lines += [f"{escaped(name)}: V = a: b", whole, RECIPE.rstrip()]
        elif kind == "pattern":  # which make finds by itself
            made[-1] = name = f"p-{number}"
            lines += [f"%-{number}: {some.choice(['s0', 's5'])}", RECIPE.rstrip()]
        elif kind == "double":
            for need in needs or [""]:
                lines += [f"{escaped(name)}:: {escaped(need)}", RECIPE.rstrip()]
        elif kind == "grouped":
            others += f" g{number}"
            lines.append(whole.replace(f"{escaped(name)}:", f"{escaped(name)} g{number} &:", 1))
            lines.append(f"\t@echo '{name}' >> log; touch '{name}' g{number}")
        elif kind == "second":
            lines += [f"L{number} = {line}", whole.replace(f": {line}", f": $$(L{number})", 1)]
            lines.append(RECIPE.rstrip())
        names.append(name)
    goals = " ".join(map(escaped, names))
    text = f"all: {goals}{others}\n.SECONDEXPANSION:\n" + "\n".join(lines) + "\n"
    return text, made, kept


@pytest.mark.parametrize("seed", range(40))
def test_what_make_makes_again_is_what_the_rules_say(tmp_path: Path, make: Make, seed: int) -> None:
    text, made, kept = _makefile(random.Random(seed), tmp_path)
    (tmp_path / "d").mkdir()
    for name in (*SOURCES, *kept):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1e9, 1e9))
    (tmp_path / "Makefile").write_text(text)
    first = make.run(tmp_path, "-k")
    if first.returncode:  # `\:` is not read alike in all places
        assert "No rule to make target" in first.stderr
        assert "\\:" in first.stderr
        return
    rules = make.rules(tmp_path, text)
    for source in SOURCES:
        make.run(tmp_path)
        (tmp_path / "log").write_text("")
        time.sleep(0.01)  # a tick of the kernel's clock of files
        os.utime(tmp_path / source)
        make.run(tmp_path)
        again = set(map(rules.path, (tmp_path / "log").read_text().splitlines()))
        own = {rules.path(name) for name in made}
        assert {
            path for path in own
            if rules.needs([path], [rules.path(source)], order_only=False)
            or rules.runs_always([path])
        } == own & again  # fmt: skip
