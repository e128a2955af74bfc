# SPDX-License-Identifier: Apache-2.0
"""compile_commands.json of real builds; other programs say what it should hold.

Oracles: CMake's and Meson's own databases, the depfiles of gcc, Bear, and one build by several
backends. Every difference that a test allows is made by a function that says why.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from backends import names_without_module, need_tool
from package_builds import LUA, Built, chosen

from etrace.export.compile_commands import entries

BIN = Path(sysconfig.get_path("scripts"))
DATA = Path(__file__).parents[1] / "data"
BACKENDS = names_without_module()
Entry = dict[str, Any]
Command = tuple[str, str, tuple[str, ...]]

FILES = {
    "main.c": "int main(void) { return 0; }\n",
    "util.c": "int util;\n",
    "extra.c": "int extra;\n",
    "start.S": ".globl start\nstart: ret\n",
    "sub/Makefile": "x.o:\n\tgcc -I.. -c ../util.c -o x.o\n",
    "Makefile": """\
all: prog x two
prog: main.o util.o
\tgcc -o $@ $^ -lm
main.o: main.c
\tgcc -O1 -DNAME='"a  b"' -c main.c -o main.o
util.o: util.c
\tgcc -DARR='[1]' -c util.c
x:
\t$(MAKE) -C sub
two: main.o util.o
\tgcc -c util.c extra.c
\tgcc main.c util.c extra.c -o both -lm
\tgcc -E main.c -o main.i
\tgcc -c start.S -o start.o
\tar rcs liba.a util.o
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of one Makefile that calls another."""
    path = tmp_path.resolve() / "project"
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def run(cwd: Path, *words: str | Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "LC_ALL": "C", "CCACHE_DISABLE": "1", **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def traced(
    cwd: Path,
    *command: str | Path,
    backend: str = "ptrace",
    env: Mapping[str, str] | None = None,
    options: Sequence[str | Path] = (),
) -> list[Entry]:
    """Trace a build from its first process to compile_commands.json."""
    place = cwd.parent / f"database-{backend}"
    trace = ("run", "-q", "--backend", backend, "-o", place)
    run(cwd, BIN / "etrace", *trace, "--", *command, env=env)
    run(place, BIN / "cas", "parse")
    run(place, BIN / "cas", "pp")
    return exported(place, *options)


def exported(place: Path, *options: str | Path) -> list[Entry]:
    output = place / "exported.json" if "-o" not in options else options[options.index("-o") + 1]
    run(place, BIN / "cas", "export", "compile_commands", "-o", output, *options)
    found: list[Entry] = json.loads(Path(output).read_text())
    return found


def commands(found: Iterable[Entry]) -> Counter[Command]:
    return Counter((each["directory"], each["file"], words(each)) for each in found)


def words(entry: Entry) -> tuple[str, ...]:
    return tuple(entry["arguments"] if "arguments" in entry else shlex.split(entry["command"]))


# ---- CMake ----


def without_depfile(entry: Entry) -> Entry:
    """CMake does not list the options for depfiles that its generators add to each command."""
    kept, rest = list[str](), iter(entry["arguments"])
    for word in rest:
        if word in ("-MT", "-MF"):
            next(rest)
        elif word != "-MD":
            kept.append(word)
    return {**entry, "arguments": kept}


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_cmake_lists_the_same(tmp_path: Path, generator: str) -> None:
    """With include directories in response files, which CMake lists by name and etrace expands."""
    need_tool("cmake", "cmake")
    need_tool("ninja", "ninja-build")
    source, build = tmp_path / "project", tmp_path / "build"
    shutil.copytree(DATA / "cmake_project", source)
    rule = (f"-DCMAKE_{lang}_USE_RESPONSE_FILE_FOR_INCLUDES=ON" for lang in ("C", "CXX"))
    run(tmp_path, "cmake", "-G", generator, "-S", source, "-B", build,
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *rule)  # fmt: skip
    found = traced(build, "cmake", "--build", ".", options=["--keep-response-files"])
    listed = json.loads((build / "compile_commands.json").read_text())
    assert commands(map(without_depfile, found)) == commands(listed)
    assert len(listed) == 4

    expanded = exported(tmp_path / "database-ptrace")
    named = [word for each in listed for word in words(each) if word.startswith("@")]
    assert not any(word.startswith("@") for each in expanded for word in words(each))
    for entry, before in zip(expanded, found, strict=True):
        wanted = [
            word
            for each in words(before)
            for word in (shlex.split((build / each[1:]).read_text()) if each[0] == "@" else [each])
        ]
        assert list(words(entry)) == wanted
    assert (len(named) > 0) == (generator == "Unix Makefiles")  # Ninja's need none


# ---- Meson and Ninja ----


def test_meson_and_ninja_list_the_same(tmp_path: Path) -> None:
    """Paths as the commands give them, outputs too; links are those of `ninja -t commands`."""
    need_tool("ninja", "ninja-build")
    source, build = tmp_path.resolve() / "project", tmp_path.resolve() / "build"
    source.mkdir()
    (source / "gen.py").write_text("open(__import__('sys').argv[1], 'w').write('int g;\\n')\n")
    (source / "my main.c").write_text("int f(void);\nint main(void) { return f(); }\n")
    (source / "lib.c").write_text("int f(void) { return 0; }\n")
    (source / "part.cpp").write_text('extern "C" int p() { return 0; }\n')
    (source / "meson.build").write_text(
        "project('p', 'c', 'cpp')\n"
        "made = custom_target('g', output: 'g.c',\n"
        f"  command: ['{sys.executable}', files('gen.py'), '@OUTPUT@'])\n"
        "part = static_library('part', 'lib.c', 'part.cpp', made)\n"
        "executable('prog', 'my main.c', link_with: part, c_args: ['-DS=\"a b\"'])\n"
    )
    compilers = {"CC": "gcc", "CXX": "g++"}  # else meson puts ccache before them
    run(source, BIN / "meson", "setup", build, env=compilers)
    links = tmp_path / "links.json"
    found = traced(build, "ninja", options=["--paths", "as-is", "--links", links])
    listed = json.loads((build / "compile_commands.json").read_text())
    assert commands(found) == commands(listed)
    assert {each["output"] for each in found} == {each["output"] for each in listed}
    assert len(listed) == 4

    planned = run(build, "ninja", "-t", "commands").splitlines()
    linked = json.loads(links.read_text())
    assert [(each["kind"], each["output"]) for each in linked] == [
        ("archive", "libpart.a"), ("executable", "prog"),
    ]  # fmt: skip
    planned_words = [shlex.split(part) for line in planned for part in line.split(" && ")]
    assert all(each["arguments"] in planned_words for each in linked)


# ---- Bear ----


def as_bear(found: Iterable[Entry]) -> list[Command]:
    """Return what Bear makes of the same calls.

    Bear keeps the first entry of a source and the output that its command names. Its arguments
    are flags, -c (also of a command that links), -o and the source; libraries and -MD are left out.
    """
    first: dict[tuple[str, str], Command] = {}
    for entry in found:
        argv = entry["arguments"]
        output = argv[argv.index("-o") + 1] if "-o" in argv else ""
        drop = {"-c", "-o", output, "-lm", "-MD"}
        name = next(
            each for each in argv[1:]
            if os.path.realpath(Path(entry["directory"], each)) == entry["file"]
        )  # fmt: skip
        kept = [each for each in argv[1:] if each not in drop and each != name]
        tail = ["-o", output] if output else []
        directory, file = entry["directory"], entry["file"]
        shown = (directory, file, (shutil.which(argv[0]) or "", *kept, "-c", *tail, name))
        first.setdefault((file, f"{directory}/{output}" if output else ""), shown)
    return list(first.values())


def bear(cwd: Path, *command: str | Path) -> list[Command]:
    need_tool("bear", "bear")
    output = cwd.parent / "bear.json"
    run(cwd, "bear", "--output", output, "--", *command)
    return list(commands(json.loads(output.read_text())).elements())


def test_bear_finds_the_same_in_a_make_project(folder: Path) -> None:
    """util.o is written twice: Bear has the first command, etrace the last."""
    seen = bear(folder, "make")
    for path in (*folder.rglob("*.o"), folder / "prog"):
        path.unlink()
    found = traced(folder, "make")
    gcc, source = shutil.which("gcc") or "", f"{folder}/util.c"
    first = (str(folder), source, (gcc, "-DARR=[1]", "-c", "util.c"))
    last = (str(folder), source, (gcc, "-c", "util.c"))
    assert sorted({*as_bear(found), first}) == sorted({*seen, last})
    assert (len(found), len(seen), first in seen, last in seen) == (8, 8, True, False)


@pytest.mark.slow
@pytest.mark.long("a package by Bear once more; a small project is compared always")
@pytest.mark.parametrize("built", chosen(LUA), indirect=True)
def test_bear_finds_the_same_in_a_package(built: Built, tmp_path: Path) -> None:
    """Lua of Debian's archive, by make -j2."""
    tree = tmp_path / "build"
    built.package.fill(tree)
    seen = bear(tree, "make", "-j2", "linux", "MYCFLAGS=-MD -g")
    found = exported(built.folder, "-o", tmp_path / "exported.json")
    here, there = str(tree), str(built.tree)
    assert sorted(
        (directory.replace(there, here), file.replace(there, here), words)
        for directory, file, words in as_bear(found)
    ) == sorted(seen)
    assert len(found) == 34


@pytest.mark.parametrize("flags", ["-static", "-m32"])
def test_bear_misses_what_such_a_tool_starts(folder: Path, flags: str) -> None:
    """Its library is in no static program, and Debian has none for programs of 32 bits."""
    source = folder / "tool.c"
    source.write_text(
        "#include <unistd.h>\nint main(int n, char **v) { return execvp(v[n > 0], v + 1); }\n"
    )
    run(folder, "gcc", flags, source, "-o", "tool")
    script = "./tool gcc -c main.c; gcc -c util.c"
    seen = [Path(file).name for _, file, _ in bear(folder, "sh", "-c", script)]
    found = [Path(each["file"]).name for each in traced(folder, "sh", "-c", script)]
    assert found == ["main.c", "util.c"]
    assert seen == ["util.c"]


# ---- compilers as readers ----


def test_every_entry_can_be_run_again_and_clang_reads_them(folder: Path) -> None:
    """A header's command checks it and writes nothing; clang takes all but gcc's own flags."""
    (folder / "inc").mkdir()
    (folder / "inc/own.h").write_text("static inline int own(void) { return MUST_BE; }\n")
    (folder / "inc/cxx.h").write_text("template <class T> T twice(T x) { return x + x; }\n")
    (folder / "own.c").write_text("#include <stddef.h>\n#include <own.h>\nint o;\n")
    (folder / "part.cc").write_text('#include "inc/cxx.h"\nint two = twice(1);\n')
    (folder / "all.rsp").write_text("-DMUST_BE=1 -Iinc -MD -MF own.d")
    script = "gcc @all.rsp -c own.c part.cc && rm all.rsp"
    found = traced(folder, "sh", "-c", script, options=["--headers"])
    assert [Path(each["file"]).name for each in found] == ["own.c", "part.cc", "cxx.h", "own.h"]
    for path in (*folder.glob("*.o"), *folder.glob("*.d")):
        path.unlink()
    for compiler in ("gcc", "clang"):
        for entry in found[2:]:
            run(Path(entry["directory"]), compiler, *entry["arguments"][1:])
    assert not list(folder.rglob("*.[od]")) + list(folder.rglob("*.gch"))
    for entry in found[:2]:
        run(Path(entry["directory"]), *entry["arguments"])
        assert Path(entry["output"]).exists()


# ---- what else builds have ----


def test_compilers_for_32_and_64_bits_are_in_one_database(folder: Path) -> None:
    script = "gcc -m32 -c util.c -o u32.o; gcc -c util.c -o u64.o; gcc -m32 -S main.c"
    found = traced(folder, "sh", "-c", script)
    assert [" ".join(each["arguments"]) for each in found] == script.split("; ")
    assert [Path(each["output"]).name for each in found] == ["u32.o", "u64.o", "main.s"]


def test_misses_hits_and_other_names_of_ccache_are_one_entry(folder: Path, tmp_path: Path) -> None:
    ccache = need_tool("ccache", "ccache")
    masked = tmp_path / "lib/ccache"
    masked.mkdir(parents=True)
    (masked / "gcc").symlink_to(ccache)
    cache = {"CCACHE_DIR": str(tmp_path / "cache"), "CCACHE_NODISABLE": "1"}
    script = (
        "unset CCACHE_DISABLE; ccache gcc -O1 -c util.c; ccache gcc -O1 -c util.c;"
        f" PATH={masked}:$PATH gcc -O1 -c util.c; ccache -s --print-stats"
    )
    (entry,) = traced(folder, "sh", "-c", script, env=cache)
    assert entry == {
        "directory": str(folder),
        "arguments": ["gcc", "-O1", "-c", "util.c"],
        "file": f"{folder}/util.c",
        "output": f"{folder}/util.o",
    }
    statistics = run(folder, "ccache", "--print-stats", env=cache)
    hits = re.findall(r"^(?:direct|preprocessed)_cache_hit\s+(\d+)$", statistics, re.MULTILINE)
    assert sum(map(int, hits)) == 2


def test_an_incremental_build_updates_the_database_of_a_whole_one(folder: Path) -> None:
    output = folder / "cc.json"
    traced(folder, "make", "prog", options=["-o", output])
    first = json.loads(output.read_text())
    (folder / "util.o").unlink()
    traced(folder, "make", "prog", env={"MAKEFLAGS": ""}, options=["--update", "-o", output])
    assert sorted(json.loads(output.read_text()), key=str) == sorted(first, key=str)
    assert [Path(each["file"]).name for each in first] == ["main.c", "util.c"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_gives_the_same(folder: Path, backend: str) -> None:
    expected = traced(folder, "make")
    for path in (*folder.rglob("*.o"), folder / "prog"):
        path.unlink()
    assert traced(folder, "make", backend=backend) == expected
    assert len(expected) == 8


def test_each_depfile_of_a_package_has_its_entry(built: Built) -> None:
    """Debian's packages, by configure or CMake and make -j2: gcc's depfiles are the oracle."""
    if not (depfiles := list(built.tree.rglob("*.d"))):
        assert built.package.name == "jsoncpp"  # CMake lists it: test_modules.py
        return
    found = {
        (os.path.realpath(each["output"]), os.path.realpath(each["file"]))
        for each in entries(built.image)
        if "output" in each
    }
    expected = set()
    for path in depfiles:
        target, _, rest = path.read_text().replace("\\\n", " ").partition(":")
        # where gcc ran: the target and the source, which the build may have removed, are below
        at = next((each for each in path.parents if (each / target).exists()), None)
        if at is not None and target.endswith(".o"):
            expected.add((os.path.realpath(at / target), os.path.realpath(at / rest.split()[0])))
    assert expected - found == set()
    assert expected
