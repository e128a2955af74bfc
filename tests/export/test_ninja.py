# SPDX-License-Identifier: Apache-2.0
"""A build.ninja of a traced build: ninja itself says whether and when it makes the same files."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from package_builds import JSONCPP_NINJA, LUA, ZLIB, Package, chosen, environment, states

from etrace.export import replay, replayed_files
from etrace.nfsdb.store import open_database
from etrace.query.dependencies import rdeps

BIN = Path(sys.executable).parent
NINJA = str(BIN / "ninja")
#: files in which programs write times, numbers of processes or names chosen at random, and those
#: that ninja removes when it has read them
BY_CHANCE = re.compile(r"(.*/)?(configure\.log|ztest\d+\..*|CMakeOutput\.log|\.ninja_\w+|.*\.o\.d)")


class Traced:
    """A build that was traced with its environment, and its build.ninja."""

    def __init__(self, folder: Path, script: str, tree: Path) -> None:
        self.folder, self.tree, self.script = folder, tree, folder / "build.ninja"
        self.environment = {**environment(tree), "CCACHE_DISABLE": "1"}
        capture: list[str | Path] = [
            BIN / "etrace",
            "run",
            "--backend",
            "ptrace",
            "--env",
            "-q",
            "-o",
            folder,
            "--",
        ]
        self.run(*capture, "sh", "-e", "-c", script)
        self.run(BIN / "cas", "parse", "--db", folder)
        self.run(BIN / "cas", "pp", "--db", folder)
        self.said = self.run(BIN / "cas", "export", "ninja", "--db", folder, "-o", self.script)

    def run(self, *command: str | Path) -> str:
        """Run a command in the tree; it must succeed. Return what it said on standard error."""
        done = subprocess.run(
            command, cwd=self.tree, env=self.environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stderr

    def ninja(self, *options: str) -> list[str]:
        """Run ninja; return the first output of each edge that it ran, or would run."""
        done = subprocess.run(
            [NINJA, "-f", self.script, *options], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:]
        return sorted(re.findall(r"^\[\d+/\d+\] \S+ (.*)$", done.stdout, re.MULTILINE))

    @property
    def image(self) -> Image:
        """The database."""
        return open_database(self.folder)

    def remove_outputs(self) -> None:
        """Remove what the build made in its tree."""
        for build in replay.replay(self.image).builds:
            for path in map(Path, build.outputs):
                if path.is_relative_to(self.tree):
                    path.unlink()

    def contents(self) -> dict[str, str]:
        """Return checksums of files, and targets of links."""
        return {
            name: content
            for name, (content, *_) in states(self.tree).items()
            if content is not None and not BY_CHANCE.fullmatch(name)
        }


@pytest.fixture
def traced(tmp_path: Path) -> Callable[[str], Traced]:
    """Return what traces a script in an empty directory."""

    def trace(script: str) -> Traced:
        tree = tmp_path.resolve() / "tree"
        tree.mkdir()
        return Traced(tmp_path.resolve(), script, tree)

    return trace


def touch(path: Path) -> None:
    """Give a file the time of now: that of touch(1) is up to a timer tick older."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def of_package(package: Package, folder: Path) -> Traced:
    tree = folder.resolve() / "build"
    package.fill(tree)
    return Traced(folder.resolve(), package.script, tree)


MAKEFILE = r"""
all: out/a.txt copy "a b" list link odd
out/a.txt: in.txt
	mkdir -p out objs
	sort in.txt | tr a-z A-Z > objs/part
	mv objs/part out/a.txt
	-false
copy: out/a.txt
	GREETING='it is $$5' sh -c 'echo "$$GREETING"; cat out/a.txt' > $@
	chmod 750 $@
"a b": copy
	cp copy 'a b'
list:
	printf 'one\ntwo\n' > list
	cat in.txt >> list
link: copy
	rm -f link
	ln -s copy link
odd: in.txt
	tr '\n' ' ' < in.txt > odd; \
	echo end >> odd
"""


def test_a_build_is_made_again_and_only_what_must_be(traced: Callable[[str], Traced]) -> None:
    build = traced(f"printf 'b\\na\\n' > in.txt; cat > Makefile <<'EOF'\n{MAKEFILE}\nEOF\nmake")
    before = build.contents()
    assert before["link"] == "-> copy"
    build.remove_outputs()
    made = build.ninja()
    assert build.contents() == before
    assert (build.tree / "copy").stat().st_mode & 0o777 == 0o750
    assert [Path(name).name for name in made] == ["a b", "copy", "link", "list", "odd", "a.txt"]
    assert build.ninja() == []
    touch(build.tree / "in.txt")
    assert [Path(name).name for name in build.ninja()] == [
        "a b", "copy", "link", "list", "odd", "a.txt",
    ]  # fmt: skip
    touch(build.tree / "copy")
    assert [Path(name).name for name in build.ninja("-n")] == ["a b", "link"]


WITH_FILES = r"""
rule cc
  command = gcc @$out.rsp -o $out
  rspfile = $out.rsp
  rspfile_content = -c $in -DPRICE='"it costs $$5"'
rule link
  command = gcc @$out.rsp -o $out
  rspfile = $out.rsp
  rspfile_content = $in_newline
build a.o: cc a.c
build main.o: cc main.c
build sub/app: link main.o a.o
"""


def test_response_files_are_written_again(traced: Callable[[str], Traced]) -> None:
    build = traced(
        "echo 'const char *price(void) { return PRICE; }' > a.c\n"
        "echo 'int puts(const char *); const char *price(void);' > main.c\n"
        "echo 'int main(void) { return puts(price()) < 0; }' >> main.c\n"
        f"cat > build.ninja <<'EOF'\n{WITH_FILES}\nEOF\n{NINJA}"
    )
    before = build.contents()
    assert not list(build.tree.glob("**/*.rsp"))
    text = build.script.read_text()
    assert f"  file = {build.tree}/a.o.rsp\n" in text
    build.remove_outputs()
    (build.tree / "sub").rmdir()
    assert [Path(name).name for name in build.ninja()] == ["a.o", "main.o", "app"]
    assert build.contents() == before
    said = subprocess.run([build.tree / "sub/app"], capture_output=True, text=True, check=True)
    assert said.stdout == "it costs $5\n"


def test_a_response_file_is_written_by_ninja_or_the_shell() -> None:
    by_ninja = replayed_files.write_back({"/t/a.rsp": b" -o a$b a.o "}, "ld")
    assert by_ninja == replayed_files.Written("/t/a.rsp", "-o a$$b a.o")
    both = replayed_files.write_back({"/t/a": b"a.o", "/t/b": b"a\nb\n"}, "ld")
    assert both is not None
    assert (both.file, both.content) == ("/t/a", "a.o")
    assert both.before == ["mkdir -p /t", 'printf %s a"$$nl"b"$$nl"\'\' > /t/b']
    assert both.after == ["rm -f /t/b"]
    names = [b"object-%d.o" % i for i in range(20_000)]
    long = replayed_files.write_back({"/t/a": b"\n".join(names)}, "ld")
    assert long == replayed_files.Written("/t/a", b" ".join(names).decode())
    assert replayed_files.write_back({"/t/a": b"\n".join(names)}, "rustc") is None
    assert replayed_files.write_back({"/t/a": b"'a b'\n" + b"\n".join(names)}, "ld") is None


def test_what_cannot_be_replayed_is_listed(traced: Callable[[str], Traced]) -> None:
    build = traced("printf 'all:\\n\\ttrue; echo\\n' > Makefile; make; echo made > stamp")
    text = build.script.read_text()
    assert f"#   {build.tree}/stamp" in text
    assert "left out, written by make, ninja or a shell that started them: 2" in build.said
    assert "left out, made no file: 1" in build.said


MAY_DIFFER = r"""
all: a b c
a:
	bin/wget x > a
b:
	date > b
c:
	date -d @0 > c
"""


def test_what_may_differ_is_listed(traced: Callable[[str], Traced]) -> None:
    build = traced(
        "mkdir bin; printf '#!/bin/sh\\necho got\\n' > bin/wget; chmod +x bin/wget\n"
        f"cat > Makefile <<'EOF'\n{MAY_DIFFER}\nEOF\nmake"
    )
    head = build.script.read_text().partition("ninja_required_version")[0]
    assert "# may differ, asks for the time:\n#   date\n" in head
    assert "# may differ, asks a server:\n#   " in head
    assert "date -d" not in head
    assert "cas: may differ, asks for the time: 1 (listed in the file)" in build.said


def test_a_trace_without_environment_says_so(tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    (tmp_path / "file").touch()
    run(BIN / "etrace", "run", "-q", "--", "cp", "file", "copy")
    run(BIN / "cas", "parse")
    said = run(BIN / "cas", "export", "ninja")
    assert "commands get the environment of ninja: etrace run --env would have kept theirs" in said
    here = tmp_path.resolve()
    assert f"build {here}/copy: run | {here}/file\n" in said


@pytest.mark.slow
@pytest.mark.parametrize("package", chosen(LUA, ZLIB, JSONCPP_NINJA))
def test_a_package_is_made_again(package: Package, tmp_path: Path) -> None:
    build = of_package(package, tmp_path)
    before = build.contents()
    build.remove_outputs()
    assert len(build.ninja()) > 10
    assert build.contents() == before
    assert build.ninja() == []
    check_inputs(build)


def check_inputs(build: Traced) -> None:
    """Touch each input in the tree: what would run is what the trace says depends on it."""
    image = build.image
    dependencies = Dependencies(image)
    builds = replay.replay(image).builds
    outputs = {path for each in builds for path in each.outputs}
    read = {path for each in builds for path in each.inputs}
    own = sorted(path for path in read - outputs if Path(path).is_relative_to(build.tree))
    assert len(own) > 10

    @functools.cache
    def made_of(path: str) -> set[str]:
        rows = rdeps(dependencies, [os.fsencode(path)], Rules(), all_files=True)
        return {os.fsdecode(image.path_string(row)) for row in rows}

    def runs(path: str) -> set[str]:
        """Return the first outputs of the edges that must run: each makes all of its outputs."""
        found: set[str] = set()
        made, todo = set[str](), [path]
        while todo:
            new = made_of(todo.pop()) - made
            made |= new
            for each in builds:
                if each.outputs & new and min(each.outputs) not in found:
                    found.add(min(each.outputs))
                    todo += each.outputs & read
        return found

    for path in own:
        times = Path(path).stat()
        touch(Path(path))
        assert build.ninja("-n") == sorted(runs(path)), path
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert build.ninja("-n") == []


def test_a_name_with_a_line_break_is_no_line_of_the_file(traced: Callable[[str], Traced]) -> None:
    name = "a\nbuild pwn: run\n  cmd = touch PWNED\n#"
    build = traced(f"printf 'all:\\n\\ttrue; echo\\n' > Makefile; make; echo made > '{name}'")
    assert "\nbuild pwn" not in build.script.read_text()


#: but tabs, which separate the fields of ninja's own log
ODD = ["a|b", "a b", "a$b", "a:b", "a#b", "${x}", "a||b", "'\"q", "#c"]


def test_odd_names_are_made_again(traced: Callable[[str], Traced]) -> None:
    """Ninja reads a bar, a dollar, a colon and blanks as others than names."""
    lines = "".join(f"cat {shlex.quote(name)} > {shlex.quote('of ' + name)}\n" for name in ODD)
    sources = "".join(f"echo {n} > {shlex.quote(name)}\n" for n, name in enumerate(ODD))
    build = traced(f"{sources}cat > Makefile <<'E'\nall:\n" + in_make(lines) + "E\nmake\n")
    for name in ODD:
        (build.tree / f"of {name}").unlink()
    build.ninja()
    assert [(build.tree / f"of {name}").read_text() for name in ODD] == [
        f"{n}\n" for n in range(len(ODD))
    ]
    assert build.ninja("-n") == []
    (build.tree / "a|b").write_text("other\n")
    touch(build.tree / "a|b")
    assert len(build.ninja()) == 1
    assert (build.tree / "of a|b").read_text() == "other\n"


def test_carriage_returns_are_left_out_of_names_and_kept_in_words(
    traced: Callable[[str], Traced],
) -> None:
    """Ninja refuses them, with the whole file."""
    build = traced(
        'printf \'all:\\n\\tcp a "$$(printf \\047x\\\\ry\\047)"\\n\\tprintf %%s '
        '"$$(printf \\047x\\\\ry\\047)" > b\\n\\techo c > c\\n\' > Makefile; echo > a; make'
    )
    assert (build.tree / "x\ry").exists()
    assert "# left out, a name has a line break:" in build.script.read_text()
    for name in ("b", "c"):
        (build.tree / name).unlink()
    build.ninja()
    assert (build.tree / "b").read_bytes() == b"x\ry"


def test_inputs_opened_by_names_that_are_gone_are_inputs(
    traced: Callable[[str], Traced], tmp_path: Path
) -> None:
    inputs = [tmp_path.resolve() / name for name in ("by_dots", "by_link")]
    for path in inputs:
        path.write_text("one\n")
    build = traced(
        "mkdir t; (cd t; cat ../../by_dots > ../out); rmdir t;"
        "ln -s .. link; cat link/by_link > out2; rm link"
    )
    for path in inputs:
        assert str(path) in build.script.read_text()


def test_phony_targets_of_make_are_targets_of_ninja(traced: Callable[[str], Traced]) -> None:
    rules = {
        "Makefile": "all: b sub\nb: a\n\tcat a > b\nsub:\n\t$(MAKE) -C s\n"
        "install: b\n\tcp b c\n.PHONY: all sub install none\nnone:\n",
        "s/Makefile": "all: y\ny: x\n\tcat x > y\n.PHONY: all\n",
    }
    texts = "".join(f"cat > {name} <<'E'\n{text}E\n" for name, text in rules.items())
    build = traced(f"mkdir s; echo > a; echo > s/x\n{texts}make all; make install")
    made = {"all": "b s/y", "install": "b c", "sub": "s/y"}
    for goal, names in made.items():
        for name in ("b", "c", "s/y"):
            (build.tree / name).unlink(missing_ok=True)
        build.ninja(goal)
        there = [name for name in ("b", "c", "s/y") if (build.tree / name).exists()]
        assert " ".join(there) == names
    assert "build none:" not in build.script.read_text()


def in_make(lines: str) -> str:
    return "".join(f"\t{line}\n" for line in lines.replace("$", "$$").splitlines())
