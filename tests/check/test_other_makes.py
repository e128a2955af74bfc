# SPDX-License-Identifier: Apache-2.0
"""Makes within makes: what one of them makes and another one reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from traced_builds import keys, make, trace

SUB = {
    "lib/f.c": "int f(void) { return 0; }\n",
    "lib/Makefile": "libf.a: f.o\n\tar rcs $@ f.o\nf.o: f.c\n\tsleep 0.2; gcc -c f.c\n",
    "prog/m.c": "int f(void); int main(void) { return f(); }\n",
    "prog/Makefile": "m: m.c ../lib/libf.a\n\tgcc -o m m.c ../lib/libf.a\n",
}
PHONY = "all: lib prog\nlib prog:\n\t$(MAKE) -C $@\n.PHONY: all lib prog\n"
WITHOUT = {"prog/Makefile": "m: m.c\n\tgcc -o m m.c ../lib/libf.a\n"}


def clean(tree: Path) -> None:
    """Remove what the makes made."""
    for name in ("lib/f.o", "lib/libf.a", "prog/m"):
        (tree / name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "rules",
    [
        PHONY,
        PHONY.replace("\t$(MAKE)", "\t@echo $@\n\t$(MAKE)"),
        "all: a b\na:\n\t$(MAKE) -C lib\nb:\n\tcd prog; $(MAKE)\n.PHONY: a b\n",
        "DIRS = lib prog\nall: $(DIRS:%=all-%)\nall-%:\n\t$(MAKE) -C $*\n",
    ],
)
def test_phony_makes_without_an_order(tmp_path: Path, rules: str) -> None:
    trace(tmp_path, "make", {"Makefile": rules, **SUB})
    (key,) = keys(tmp_path)
    assert key.startswith("missing-order lib/libf.a ")
    clean(tmp_path)
    assert make(tmp_path, "-j2") != 0


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        (PHONY + "prog: lib\n", {}),
        (PHONY + ".NOTPARALLEL:\n", {}),
        ("all:\n\t$(MAKE) -C lib\n\t$(MAKE) -C prog\n", {}),
        ("all:\n\tfor d in lib prog; do $(MAKE) -C $$d || exit; done\n", {}),
        # a make that makes what it needs in another directory
        (PHONY, {"prog/Makefile": SUB["prog/Makefile"] + "../lib/libf.a:\n\t$(MAKE) -C ../lib\n"}),
        (PHONY, {"prog/Makefile": "all: m\nm: libs m.c ../lib/libf.a\n\tgcc -o m m.c ../lib/libf.a"
                                  "\nlibs:\n\t$(MAKE) -C ../lib\n../lib/libf.a: libs\n"}),
    ],
)  # fmt: skip
def test_makes_that_are_ordered(tmp_path: Path, rules: str, more: dict[str, str]) -> None:
    trace(tmp_path, "make", {"Makefile": rules, **SUB, **more})
    assert [key for key in keys(tmp_path) if not key.startswith("two-writers")] == []


@pytest.mark.parametrize(
    "rules",
    [
        PHONY + "prog: lib\n",
        "all:\n\t$(MAKE) -C lib\n\t$(MAKE) -C prog\n",
        "all:\n\tfor d in lib prog; do $(MAKE) -C $$d || exit; done\n",
    ],
)
def test_a_library_of_another_make_that_a_rule_lacks(tmp_path: Path, rules: str) -> None:
    trace(tmp_path, "make", {"Makefile": rules, **SUB, **WITHOUT})
    assert keys(tmp_path) == ["missing-input ../lib/libf.a m"]
    (tmp_path / "lib/f.c").write_text("int f(void) { return 3; }\n")
    assert make(tmp_path) == 0
    assert subprocess.run([tmp_path / "prog/m"], check=False).returncode == 0


def test_an_input_through_a_stamp_of_the_other_make(tmp_path: Path) -> None:
    sub = SUB["lib/Makefile"]
    more = {
        "lib/Makefile": f"stamp: libf.a\n\ttouch stamp\n{sub}",
        "prog/Makefile": "m: m.c ../lib/stamp\n\tgcc -o m m.c ../lib/libf.a\n",
    }
    trace(tmp_path, "make", {"Makefile": PHONY + "prog: lib\n", **SUB, **more})
    assert keys(tmp_path) == []
    (tmp_path / "lib/f.c").write_text("int f(void) { return 3; }\n")
    assert make(tmp_path) == 0
    assert subprocess.run([tmp_path / "prog/m"], check=False).returncode == 3


def test_an_input_of_what_a_third_make_makes(tmp_path: Path) -> None:
    """As a test that CMake's makefiles run: it opens the libraries of the program, too."""
    more = {"out/Makefile": "o: ../prog/m\n\tcat ../prog/m ../prog/m.c ../lib/libf.a > o\n"}
    rules = "all:\n" + "".join(f"\t$(MAKE) -C {each}\n" for each in ("lib", "prog", "out"))
    trace(tmp_path, "make", {"Makefile": rules, **SUB, **more})
    assert keys(tmp_path) == []
    before = (tmp_path / "out/o").read_bytes()
    (tmp_path / "lib/f.c").write_text("int f(void) { return 3; }\n")
    assert make(tmp_path) == 0
    assert (tmp_path / "out/o").read_bytes() != before


@pytest.mark.parametrize("option", ["-f ", "-f", "--file=", "-sf "])
def test_makes_of_one_directory_have_their_own_files(tmp_path: Path, option: str) -> None:
    """That another make of the directory makes the file says nothing: so are CMake's makefiles."""
    rules = "all: a b\na b:\n\t$(MAKE) OPTION$@.mk\n.PHONY: a b\n".replace("OPTION", option)
    more = {"a.mk": "x: in\n\tcp in x\n", "b.mk": "y: in\n\tcat x in > y\n", "in": ""}
    trace(tmp_path, "make", {"Makefile": rules, **more})
    assert keys(tmp_path) == ["missing-order x b"]
