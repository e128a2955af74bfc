# SPDX-License-Identifier: Apache-2.0
"""Faults of makefiles that real runs of make show, and rules that are right."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest
from traced_builds import BIN, forget_rules, found, keys, trace

from etrace.check import accepted
from etrace.errors import EtraceError
from etrace.rules import declared

SOURCES = {
    "a.c": '#include "a.h"\nint f(void); int main(void) { return A + f(); }\n',
    "b.c": '#include "gen.h"\nint f(void) { return G; }\n',
    "a.h": "#define A 0\n",
    "gen.sh": "echo '#define G 0'\n",
}
RIGHT = """\
all: prog
prog: a.o b.o
\t$(CC) -o $@ a.o b.o
a.o: a.h
b.o: gen.h
gen.h: gen.sh
\tsh gen.sh > $@
.PHONY: all
"""


def build(tree: Path, makefile: str, command: str = "make", **sources: str) -> Path:
    """Trace a make with files in a tree; return the tree."""
    return trace(tree, command, {"Makefile": makefile, **SOURCES, **sources})


def test_rules_that_are_right_have_no_fault(tmp_path: Path) -> None:
    result = found(build(tmp_path, RIGHT))
    assert list(result.faults) == []
    assert result.n_known == result.n_recipes == 4


@pytest.mark.parametrize(
    "more", ["EXTRA = -DX='\"a: b\"'", "EXTRA := 1", "EXTRA += x y", "override EXTRA = a.h"]
)
def test_variables_of_a_target_are_no_rule(tmp_path: Path, more: str) -> None:
    """make prints them before the rule of the target, in its form."""
    assert keys(build(tmp_path, f"{RIGHT}a.o: {more}\nb.o: {more}\n")) == []


def test_a_header_that_no_rule_names_is_a_missing_input(tmp_path: Path) -> None:
    tree = build(tmp_path, RIGHT.replace("a.o: a.h\n", ""))
    (fault,) = found(tree).faults
    assert (fault.key, fault.remedy) == ("missing-input a.h a.o", "a.o: a.h")


def test_what_check_calls_stale_is_not_made_again_by_make(tmp_path: Path) -> None:
    tree = build(tmp_path, RIGHT.replace("a.o: a.h\n", ""))
    os.utime(tree / "a.h", (2e9, 2e9))
    assert subprocess.run(["make", "-q"], cwd=tree, check=False).returncode == 0
    os.utime(tree / "gen.sh", (2e9, 2e9))
    assert subprocess.run(["make", "-q"], cwd=tree, check=False).returncode == 1


def test_a_made_header_that_no_rule_names_is_a_missing_order(tmp_path: Path) -> None:
    rules = RIGHT.replace("all: prog", "all: gen.h prog").replace("b.o: gen.h\n", "")
    (fault,) = found(build(tmp_path, rules)).faults
    assert (fault.key, fault.remedy) == ("missing-order gen.h b.o", "b.o: gen.h")
    assert fault.made_for == ("gen.h",)


def test_after_the_remedy_there_is_no_fault(tmp_path: Path) -> None:
    wrong = RIGHT.replace("all: prog", "all: gen.h prog").replace("b.o: gen.h\n", "")
    assert keys(build(tmp_path, wrong + "b.o: gen.h\n")) == []


@pytest.mark.parametrize(
    "more", [".NOTPARALLEL:\n", "b.o: | middle\nmiddle: gen.h\n", "%.o: %.c gen.h\n\tcc -c $<\n"]
)
def test_an_order_that_is_implied_is_one(tmp_path: Path, more: str) -> None:
    rules = RIGHT.replace("all: prog", "all: gen.h prog").replace("b.o: gen.h\n", "")
    assert [key for key in keys(build(tmp_path, rules + more)) if "order" in key] == []


def test_a_file_made_first_but_not_an_input_is_stale(tmp_path: Path) -> None:
    assert keys(build(tmp_path, RIGHT.replace("b.o: gen.h", "b.o: | gen.h"))) == [
        "missing-input gen.h b.o"
    ]


def test_dependency_files_declare_what_they_list(tmp_path: Path) -> None:
    rules = RIGHT.replace("a.o: a.h\n", "CFLAGS += -MMD\n-include a.d b.d\n")
    assert keys(build(tmp_path, rules)) == []


def test_the_second_of_several_targets_orders_too(tmp_path: Path) -> None:
    rules = "all: x.h b.o\nx.h gen.h:\n\tsh gen.sh > gen.h; cp gen.h x.h\nb.o: x.h gen.h\n"
    assert [key for key in keys(build(tmp_path, rules)) if "order" in key] == []


def test_two_recipes_that_write_one_file(tmp_path: Path) -> None:
    rules = "all: x y\nx:\n\techo 1 > log; echo > x\ny:\n\techo 2 > log; echo > y\n"
    assert keys(build(tmp_path, rules)) == ["two-writers log y"]
    (tmp_path / "x").unlink()
    assert keys(build(tmp_path, rules.replace("y:\n", "y: x\n"))) == []


def test_devices_are_not_files_of_the_build(tmp_path: Path) -> None:
    rules = "all: x y\nx:\n\techo > /dev/null; echo > x\ny:\n\techo > /dev/null; echo > y\n"
    assert keys(build(tmp_path, rules)) == []


def test_a_made_program_that_another_recipe_runs_is_read(tmp_path: Path) -> None:
    rules = "all: tool x\ntool: gen.sh\n\tcp $$(which true) tool\nx:\n\t./tool && echo > x\n"
    assert keys(build(tmp_path, rules)) == ["missing-order tool x"]
    (tmp_path / "tool").unlink()
    assert subprocess.run(["make", "x"], cwd=tmp_path, check=False).returncode == 0
    (tmp_path / "x").unlink()
    assert subprocess.run(["make", "x"], cwd=tmp_path, check=False).returncode == 2


def test_makes_that_make_starts_are_checked_too(tmp_path: Path) -> None:
    rules = "all:\n\t$(MAKE) -C s\n"
    tree = build(
        tmp_path, rules, **{"s/Makefile": "q: p\n\tcat r > q\np:\n\techo > p\n", "s/r": "r\n"}
    )
    assert keys(tree) == ["missing-input r q"]


def test_a_target_that_is_made_in_every_run_is_never_stale(tmp_path: Path) -> None:
    rules = RIGHT.replace("a.o: a.h\n", "a.o: FORCE\nFORCE:\n")
    assert keys(build(tmp_path, rules)) == []


def test_shell_functions_run_only_on_demand_and_change_no_file(tmp_path: Path) -> None:
    rules = "X := $(shell touch made; echo a.h)\n" + RIGHT.replace("a.h", "$(X)")
    tree = forget_rules(build(tmp_path, rules))
    (tree / "made").unlink()
    result = found(tree)
    assert list(result.faults) == []
    assert [why for _, why in result.unknown] == [
        "its makefiles call $(shell): --run-shell lets them"
    ]
    assert keys(tree, runs_shell=True) == []
    assert not (tree / "made").exists()


def test_make_cannot_write_by_its_own_functions(tmp_path: Path) -> None:
    tree = build(tmp_path, "$(file >made,x)\n" + RIGHT)
    (tree / "made").unlink()
    ((_, why),) = found(tree).unknown
    assert why.startswith("Makefile:1: *** open: made: ")
    assert not (tree / "made").exists()


def test_recipes_do_not_run(tmp_path: Path) -> None:
    tree = build(tmp_path, RIGHT + "all: again\nagain:\n\t+echo x >> made\n")
    before = (tree / "made").read_text()
    found(tree)
    found(tree, runs_shell=True)
    assert (tree / "made").read_text() == before


def test_a_build_without_make_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EtraceError, match="ran no make or ninja"):
        found(build(tmp_path, RIGHT, "cc -c a.c"))


def test_a_make_that_prints_without_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = dataclasses.replace(declared.LIMITS, output_bytes=1 << 20)
    monkeypatch.setattr(declared, "LIMITS", limits)
    tree = build(tmp_path, RIGHT)
    words = " ".join("abcdefghij")
    info = f"$(foreach a,{words},$(foreach b,{words},$(foreach c,{words},$(info {'x' * 4000}))))"
    (forget_rules(tree) / "Makefile").write_text(f"{info}{info}\n{RIGHT}")
    with pytest.raises(EtraceError, match="printed more than 1048576 bytes"):
        found(tree)


def test_each_entry_of_a_double_colon_counts(tmp_path: Path) -> None:
    rules = "out:: a.c\n\tcat a.c > out\nout:: b.c\n\tcat b.c >> out\n"
    assert keys(build(tmp_path, rules)) == []
    wrong = rules.replace("cat b.c", "cat b.c a.h")
    (tmp_path / "out").unlink()
    assert keys(build(tmp_path, wrong)) == ["missing-input a.h out"]


@pytest.mark.parametrize(
    "recipe",
    [
        "$(file >$@.in,$^)\n\tcat $@.in > $@",
        "$(file >l,a)$(file >>l,b)\n\tcat l > $@",
        "$(call write,$@.in)\n\tcat $@.in > $@",
    ],
)
def test_a_file_that_make_writes_for_a_recipe_is_no_input(tmp_path: Path, recipe: str) -> None:
    rules = f"write = $(file >$1,x)\nprog: a.c\n\t{recipe}\n"
    assert keys(build(tmp_path, rules)) == []


def test_a_file_that_make_writes_in_every_run_hides_no_rule(tmp_path: Path) -> None:
    """make expands the recipe when it is asked for its rules, and stops since it cannot write."""
    rules = "all: list prog\nlist:\n\t$(file >$@.in,$^)cat $@.in\nprog: a.c\n\tcat a.c b.c > prog\n"
    tree = build(tmp_path, f"{rules}.PHONY: all list\n")
    before = {path: path.stat().st_mtime_ns for path in tree.iterdir()}
    result = found(tree)
    assert (list(result.unknown), [fault.key for fault in result.faults]) == (
        [], ["missing-input b.c prog"]
    )  # fmt: skip
    assert {path: path.stat().st_mtime_ns for path in tree.iterdir()} == before


def test_a_name_through_a_link_is_that_of_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "other" / "d").mkdir(parents=True)
    (tmp_path / "l").symlink_to("other/d")
    sources = {"other/x.h": "#define X 1\n", "x.c": '#include "l/../x.h"\nint x = X;\n'}
    tree = build(tmp_path, "x.o: x.c l/../x.h\n\tcc -c x.c\n", **sources)
    assert keys(tree) == []
    os.utime(tree / "other/x.h", (2e9, 2e9))
    assert subprocess.run(["make", "-q"], cwd=tree, check=False).returncode == 1
    (tree / "x.o").unlink()
    assert keys(build(tmp_path, "x.o: x.c\n\tcc -c x.c\n", **sources)) == [
        "missing-input other/x.h x.o"
    ]


@pytest.mark.parametrize("recipe", ["", " ;", " ; @:", " | FORCE"])
def test_a_file_without_a_recipe_passes_no_change_on(tmp_path: Path, recipe: str) -> None:
    """GNU make compares the file itself with what needs it, and that file does not change."""
    rules = f"a.o: a.c\n\tcc -c a.c\na.c: a.h{recipe}\nFORCE:\n"
    tree = build(tmp_path, rules)
    assert keys(tree) == ["missing-input a.h a.o"]
    before = (tree / "a.o").stat().st_mtime_ns
    os.utime(tree / "a.h")
    subprocess.run(["make"], cwd=tree, check=True)
    assert (tree / "a.o").stat().st_mtime_ns == before


def test_a_target_without_a_recipe_that_is_no_file_passes_changes_on(tmp_path: Path) -> None:
    rules = "a.o: headers a.c\n\tcc -c a.c\nheaders: a.h\n"
    assert keys(build(tmp_path, rules)) == []


def test_members_of_an_archive(tmp_path: Path) -> None:
    rules = "all: prog\nprog: a.o lib.a\n\tcc -o prog a.o lib.a\na.o: a.h\n"
    rules += "lib.a: lib.a(f.o) lib.a(g.o)\n"
    sources = {"f.c": "int f(void) { return 0; }\n", "g.c": "int g;\n"}
    tree = build(tmp_path, rules, "make -j1", **sources)
    assert keys(tree) == []
    os.utime(tree / "g.c", (2e9, 2e9))
    assert subprocess.run(["make", "-q"], cwd=tree, check=False).returncode == 1


# ---- links ----

LINK = "\tcc -shared -o $@ f.o\n"
LIBRARIES = {
    "links in the recipe": "libf.so: f.o\n\tcc -shared -o $@.1.2 f.o; ln -sf $@.1.2 $@\n",
    "a rule for each": (
        "libf.so: libf.so.1\n\tln -sf libf.so.1 $@\n"
        "libf.so.1: libf.so.1.2\n\tln -sf libf.so.1.2 $@\n"
        f"libf.so.1.2: f.o\n{LINK}"
    ),
    "the file first": (
        f"libf.so.1.2: f.o\n{LINK}libf.so.1: libf.so.1.2\n\tln -sf libf.so.1.2 $@\n"
        "libf.so: libf.so.1\n\tln -sf libf.so.1 $@\n"
    ),
    "a rule for the links": (
        f"libf.so libf.so.1 &: libf.so.1.2\n\tln -sf libf.so.1.2 libf.so.1\n"
        f"\tln -sf libf.so.1 libf.so\nlibf.so.1.2: f.o\n{LINK}"
    ),
}


@pytest.mark.parametrize("how", LIBRARIES)
def test_a_library_by_several_names(tmp_path: Path, how: str) -> None:
    rules = f"all: prog\nprog: a.o libf.so\n\tcc -o $@ a.o ./libf.so\na.o: a.h\n{LIBRARIES[how]}"
    assert keys(build(tmp_path, rules, **{"f.c": "int f(void) { return 0; }\n"})) == []


def test_a_library_that_nothing_waits_for(tmp_path: Path) -> None:
    rules = "all: libf.so prog\nprog: a.o\n\tcc -o $@ a.o ./libf.so\na.o: a.h\n"
    tree = build(
        tmp_path, rules + LIBRARIES["a rule for each"], **{"f.c": "int f(void) { return 0; }\n"}
    )
    assert keys(tree) == ["missing-order libf.so.1.2 prog"]


VERSIONED = """\
cmake_minimum_required(VERSION 3.13)
project(x C)
add_library(f SHARED f.c)
set_target_properties(f PROPERTIES VERSION 1.2.3 SOVERSION 1)
add_executable(m m.c)
target_link_libraries(m f)
"""


@pytest.mark.parametrize(("generator", "command"), [("Unix Makefiles", "make"), ("Ninja", "ninja")])
def test_a_versioned_library_of_cmake(tmp_path: Path, generator: str, command: str) -> None:
    for name, text in {
        "CMakeLists.txt": VERSIONED,
        "f.c": "int f(void) { return 0; }\n",
        "m.c": "int f(void); int main(void) { return f(); }\n",
    }.items():
        (tmp_path / name).write_text(text)
    subprocess.run(
        ["cmake", "-G", generator, "-S", tmp_path, "-B", tmp_path / "b"],
        check=True, capture_output=True,
    )  # fmt: skip
    result = found(trace(tmp_path / "b", command, {}))
    assert [fault.key for fault in result.faults] == []
    assert result.n_known >= 4


# ---- makefiles of CMake ----

CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(prog C)
add_executable(prog a.c b.c)
target_include_directories(prog PRIVATE ${CMAKE_BINARY_DIR})
"""


def test_what_cmake_reads_only_in_the_next_build_is_known(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    for name, text in {"CMakeLists.txt": CMAKE, **SOURCES}.items():
        (sources / name).write_text(text)
    (tmp_path / "gen.h").write_text("#define G 0\n")
    subprocess.run(["cmake", "-S", sources, "-B", tmp_path], check=True, capture_output=True)
    result = found(trace(tmp_path, "make", {}))
    assert list(result.faults) == []
    assert result.n_known >= 3
    next((tmp_path / "CMakeFiles/prog.dir").glob("a.c.o.d")).unlink()
    (fault,) = found(forget_rules(tmp_path)).faults
    assert (fault.id, Path(fault.file).name) == ("missing-input", "a.h")


# ---- the command ----


def run(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `etrace check` in a tree."""
    return subprocess.run(
        [BIN / "etrace", "check", *options], cwd=tree, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_a_build_of_which_most_is_not_judged_does_not_pass(tmp_path: Path, form: str) -> None:
    sub = "X := $(shell echo a.h)\nq r s: $(X)\n\tcat $(X) > $@\nall: q r s\n"
    sources = {"s/Makefile": sub, "s/a.h": ""}
    tree = build(tmp_path, RIGHT + "all: sub\nsub: prog\n\t$(MAKE) -C s all\n", **sources)
    done = run(forget_rules(tree), "--format", form)
    assert done.returncode == 0  # 4 of 7
    tree = build(tmp_path, "all:\n\t$(MAKE) -C s all\n\ttouch here\n", "rm s/[qrs]; make")
    done = run(forget_rules(tree), "--format", form)
    assert done.returncode == 2
    first = "not judged: only 1 of 4 commands that wrote files of the project could be; its "
    cure = "makefiles call $(shell): --run-shell lets them"
    line = (done.stdout if form == "text" else done.stderr).splitlines()[0]
    assert line.removeprefix("etrace: ") == first + cure
    if form == "json":
        record = json.loads(done.stdout)
        assert (record["n_writers"], record["n_writers_judged"]) == (4, 1)
    assert run(tree, "--run-shell").returncode == 0


def test_a_build_that_wrote_nothing_of_the_project_is_not_judged(tmp_path: Path) -> None:
    done = run(build(tmp_path, "X := $(shell echo a.h)\nall:\n\tcat $(X)\n"))
    assert done.returncode == 2
    assert done.stdout.startswith("not judged: the targets of no command are known\n")


def test_recipes_whose_rules_do_not_name_them_are_not_judged(tmp_path: Path) -> None:
    rules = "X = $(shell :)\nall:\n\t$(A)\n\t$(B)\nA = cp Makefile a\nB = cp Makefile b\n"
    done = run(build(tmp_path, rules.replace("X = $(shell :)\n", "")))
    assert done.returncode == 2
    assert done.stdout.startswith("not judged: only 0 of 2 commands that wrote files")
    assert "let rules name what they write" in done.stdout


@pytest.mark.parametrize("command", ["make -k", "make all"])
def test_a_build_that_failed_is_said_to_be_checked_in_part(tmp_path: Path, command: str) -> None:
    sources = {"Makefile": RIGHT, **SOURCES, "b.c": "no C\n"}
    tree = trace(tmp_path, command, sources, fails=True)
    done = run(tree)
    assert done.returncode == 0
    assert "this build failed: what it did not get to was not checked" in done.stderr
    (tree / "b.c").write_text(SOURCES["b.c"])
    assert "failed" not in run(trace(tree, "make", {})).stderr


def test_the_command_shows_accepts_and_writes_sarif(tmp_path: Path) -> None:
    tree = build(tmp_path, RIGHT.replace("a.o: a.h\n", ""))
    done = run(tree)
    assert done.returncode == 1
    assert "missing-input  " in done.stdout
    assert "add         a.o: a.h" in done.stdout
    (tree / "ok").write_text("# known\nmissing-input a.h *.o # a.h never changes\n")
    done = run(tree, "--accepted", "ok")
    assert (done.returncode, done.stdout.split(";")[0]) == (0, "0 faults, 1 accepted")
    log = json.loads(run(tree, "--format", "sarif", "--accepted", "ok").stdout)
    (result,) = log["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external"}]
    record = json.loads(run(tree, "--json").stdout)
    assert record["faults"][0]["remedy"] == "a.o: a.h"


def test_an_accepted_line_needs_a_reason(tmp_path: Path) -> None:
    (tmp_path / "ok").write_text("missing-input a.h a.o\n")
    with pytest.raises(EtraceError, match="ok:1: not a fault and a reason"):
        accepted.read(tmp_path / "ok")


def test_a_remedy_has_names_as_make_reads_them(tmp_path: Path) -> None:
    rules = "all: x\nx:\n\tcat 'h h' 'a$$b#' > x\n"
    result = found(build(tmp_path, rules, **{"h h": "1\n", "a$b#": "1\n"}))
    assert sorted(fault.remedy for fault in result.faults) == ["x: a$$b\\#", "x: h\\ h"]
    for fault in result.faults:
        with (tmp_path / "Makefile").open("a") as stream:
            stream.write(f"{fault.remedy}\n")
    subprocess.run(["make"], cwd=tmp_path, check=True)
    os.utime(tmp_path / "a$b#", (2e9, 2e9))
    assert subprocess.run(["make", "-q"], cwd=tmp_path, check=False).returncode == 1
