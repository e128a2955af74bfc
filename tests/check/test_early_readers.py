# SPDX-License-Identifier: Apache-2.0
"""Orders that a build did not need: dependency files, readers before the writer, failures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from traced_builds import found, keys, make, trace

Z = {"z.c": '#include "gen.h"\nint z;\n'}
FIRST = "all: lib.a\nlib.a: gen.h z.o\n\tar rc lib.a z.o\ngen.h:\n\techo > gen.h\n"


def orders(tree: Path) -> list[str]:
    """Return the missing orders of a tree."""
    return [key for key in keys(tree) if key.startswith("missing-order")]


# ---- dependency files ----


@pytest.mark.parametrize(
    "rules",
    [
        "z.o: z.c\n\tgcc -MMD -c z.c\n-include z.d\n",
        "CPPFLAGS = -MMD -MP\n-include $(wildcard *.d)\n",
        "z.o: z.c\n\tgcc -MMD -MP -MF z.tmp -c z.c && mv z.tmp .z.P\n-include .z.P\n",
        # automake's: make makes an empty one first
        (
            "z.o: z.c\n\tgcc -MT $@ -MMD -MP -MF z.Tpo -c z.c\n\tmv -f z.Tpo z.Po\n"
            "z.Po:\n\t@echo '# dummy' > z.Po\ninclude z.Po\n"
        ),
        "z.o: z.c\n\tgcc -c z.c\n\tgcc -MM z.c > z.d\n-include z.d\n",
    ],
)
def test_what_only_a_dependency_file_names_does_not_order(tmp_path: Path, rules: str) -> None:
    trace(tmp_path, "make", {"Makefile": FIRST + rules, **Z})
    assert keys(tmp_path) == ["missing-order gen.h z.o"]
    for name in ("gen.h", "z.o", "z.d", ".z.P", "z.Po", "lib.a"):
        (tmp_path / name).unlink(missing_ok=True)
    assert make(tmp_path, "z.o") != 0


@pytest.mark.parametrize(
    "rules",
    [
        "z.o: z.c gen.h\n\tgcc -MMD -c z.c\n-include z.d\n",
        "z.o: z.c | gen.h\n\tgcc -MMD -c z.c\n-include z.d\n",
        # make makes this one before all else
        "z.o: z.c\n\tgcc -c z.c\nz.d: z.c\n\tgcc -MM -MG z.c > z.d\n-include z.d\n",
    ],
)
def test_what_makefiles_name_too_orders(tmp_path: Path, rules: str) -> None:
    trace(tmp_path, "make", {"Makefile": FIRST + rules, **Z})
    assert keys(tmp_path) == []
    for name in ("gen.h", "z.o", "z.d", "lib.a"):
        (tmp_path / name).unlink(missing_ok=True)
    assert make(tmp_path, "z.o") == 0


def test_a_dependency_file_of_an_outer_make_orders(tmp_path: Path) -> None:
    rules = "all: dep\n\t$(MAKE) lib.a\ndep: z.c\n\tgcc -MM -MG z.c > .dep\n-include .dep\n"
    trace(tmp_path, "make", {"Makefile": rules + FIRST.replace("all: lib.a\n", ""), **Z})
    assert keys(tmp_path) == []


# ---- a file that was read before it was made again ----

STALE = "all: a.o b.o\na.o: a.c config.h\n\tgcc -c a.c\nb.o: b.c\n\tgcc -c b.c\n"
MADE = "config.h: gen.sh\n\tsleep 0.4; sh gen.sh > config.h\n"
SOURCES = {
    "gen.sh": "echo '#define X 1'\n",
    "a.c": '#include "config.h"\nint a = X;\n',
    "b.c": '#include "config.h"\nint b = X;\n',
}


def old(tree: Path) -> None:
    """Make the generated file older than what it is made from."""
    (tree / "config.h").write_text("#define X 0\n")
    os.utime(tree / "config.h", (1e9, 1e9))


@pytest.mark.parametrize(
    ("command", "head"),
    [
        ("make -j2", STALE),
        ("make", STALE.replace("a.o b.o", "b.o a.o", 1)),
        # its rule does not name it
        ("make", STALE.replace("a.o b.o", "b.o a.o", 1).replace("a.c config.h", "a.c stamp")),
    ],
)
def test_a_file_that_was_read_before_it_was_made_again(
    tmp_path: Path, command: str, head: str
) -> None:
    old(tmp_path)
    rules = head + MADE
    if "stamp" in head:
        rules = rules.replace("config.h: gen", "stamp: gen").replace(
            "> config.h", "> config.h; >stamp"
        )
    trace(tmp_path, command, {"Makefile": rules, **SOURCES})
    assert orders(tmp_path) == ["missing-order config.h b.o"]
    os.utime(tmp_path / "config.h", (2e9, 2e9))
    assert make(tmp_path, "-q", "b.o") == 0


@pytest.mark.parametrize(
    "rules",
    [
        # what reads it is needed by what makes it again
        (
            "all: x\nx: y\n\tsed 1q x.in > x.new; cat x.new y > x; cp x config.h\n"
            "y: config.h\n\tcat config.h > y\nconfig.h: ;\n"
        ),
        # a log that both write
        (
            "all: p q\np: a.c\n\techo p >> config.h; cat config.h > p\n"
            "q: p\n\techo q >> config.h; cat config.h > q\n"
        ),
    ],
)
def test_readers_before_the_writer_that_are_right(tmp_path: Path, rules: str) -> None:
    old(tmp_path)
    trace(tmp_path, "make", {"Makefile": rules, "x.in": "1\n", **SOURCES})
    assert orders(tmp_path) == []


# ---- a file that was not there yet ----


@pytest.mark.parametrize(
    ("command", "rule", "target"),
    [
        ("make -k -j2", "b.o: b.c\n\tgcc -c b.c\n", "b.o"),
        ("make -k -j2", "b.o: b.c\n", "b.o"),
        ("make -j2", "%.o: %.c\n\t$(CC) $(CFLAGS) -c $< -o $@\n", "b.o"),
        ("make -k", "b.o: config.txt\n\techo b > b.o\nconfig.txt:\n\tcat config.h > $@\n",
         "config.txt"),
        ("make -k -j2", "b.o:\n\tgcc -I. -Isub -c sub/b.c -o b.o\n", "b.o"),
        ("make -k", "b.o:\n\tgcc -E sub/b.c -I . > t && mv t b.o\n", "b.o"),
        ("make -k", "b.o:\n\t. ./config.h; echo b > $@\n", "b.o"),
        ("make -k", "b.o: b.c\n\tgcc -imacros config.h -c b.c -o $@\n", "b.o"),
    ],
)  # fmt: skip
def test_a_file_that_a_failed_command_was_after(
    tmp_path: Path, command: str, rule: str, target: str
) -> None:
    head = "all: b.o a.o\na.o: a.c config.h\n\tgcc -c a.c\n"
    more = {"sub/b.c": SOURCES["b.c"].replace('"config.h"', "<config.h>")}
    makefile = head + rule + MADE
    trace(tmp_path, command, {"Makefile": makefile, **SOURCES, **more}, fails=True)
    assert keys(tmp_path) == [f"missing-order config.h {target}"]
    (fault,) = found(tmp_path).faults
    assert fault.remedy == f"{target}: config.h"
    with (tmp_path / "Makefile").open("a") as stream:
        stream.write(f"{fault.remedy}\n")
    assert orders(trace(tmp_path, "make -k || :", {})) == []


def test_a_library_that_a_failed_link_was_after(tmp_path: Path) -> None:
    makefile = (
        "all: m libf.a\nm: m.c\n\tgcc -o m m.c -L. -lf\nlibf.a: f.o\n\tar rcs libf.a f.o\n"
        "f.o: f.c\n\tgcc -c f.c\n"
    )
    code = {
        "m.c": "int f(void); int main(void) { return f(); }\n",
        "f.c": "int f(void) { return 0; }\n",
    }
    trace(tmp_path, "make -k", {"Makefile": makefile, **code}, fails=True)
    assert keys(tmp_path) == ["missing-order libf.a m"]
    assert make(tmp_path) == 0


@pytest.mark.parametrize(
    "rule",
    [
        "b.o: b.c config.h\n\tgcc -DX= -c b.c\n",
        "b.o: b.c\n\t-test -f config.h\n\tgcc -c nothing.c\n",
        "b.o: b.c\n\t-rm config.h\n\tgcc -c nothing.c\n",
        "b.o: b.c\n\tgcc -c nothing.c\n",
    ],
)
def test_a_failure_for_another_reason_is_no_order(tmp_path: Path, rule: str) -> None:
    head = "all: b.o a.o\na.o: a.c config.h\n\tgcc -c a.c\n"
    sources = {**SOURCES, "b.c": '#include "config.h"\nnot C\n'}
    trace(tmp_path, "make -k", {"Makefile": head + rule + MADE, **sources}, fails=True)
    assert orders(tmp_path) == []


@pytest.mark.parametrize(
    ("rules", "key"),
    [
        ("all: b.o config.h\n", "missing-order config.h b.o"),
        ("all: x config.h\nx: b.c\n\t$(MAKE) -C sub\n", "missing-order config.h x"),
        ("all: m libf.a\nm: b.c\n\techo > m.c; gcc m.c -L. -lf\n", "missing-order libf.a m"),
        ("all: l.a a.o\nl.a:\n\tar rc l.a a.o\na.o: a.c config.h\n", "missing-order a.o l.a"),
        ("all: b.o\n", "missing-order config.h b.o"),
        # one that is there, of two
        ("all: m libf.so\nm:\n\tar rc libf.a; gcc no.c -L. -lf\nlibf.so:\n\tcp b.c $@\n", ""),
        # a dependency file, which a compiler writes
        ("all: b.o d\nb.o: b.c\n\tgcc -MMD -MF d -c -x c no.c\nd:\n-include d\n", ""),
    ],
)
def test_what_a_failed_command_was_after_and_nothing_made(
    tmp_path: Path, rules: str, key: str
) -> None:
    """The build ends there, before the recipe that makes it."""
    more = {
        "Makefile": f"{rules}libf.a: a.c\n\tgcc -c a.c -o f.o; ar rc libf.a f.o\n{MADE}",
        "sub/Makefile": "s.o: s.c\n\tgcc -I.. -c s.c\n",
        "sub/s.c": '#include "config.h"\n',
    }
    trace(tmp_path, "make", {**SOURCES, **more}, fails=True)
    assert keys(tmp_path) == [key] * bool(key)
