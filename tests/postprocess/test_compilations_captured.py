# SPDX-License-Identifier: Apache-2.0
"""Compilations of real compilers, captured: the compilers themselves and CMake are the oracles."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from backends import capture
from compiling import Found, find, write_database
from databases import GOLDEN
from libetrace.depend import configuration as config
from libetrace.image.file import Image

from etrace.export import compile_commands
from etrace.nfsdb.store import open_database
from etrace.postprocess import run
from etrace.postprocess.compilations.probe import Prober, search_list

DATA = Path(__file__).parents[1] / "data"
#: command -> language, sources, objects; relative to the directory of the build
EXPECTED: dict[str, tuple[str, str, str] | None] = {
    "gcc -iquote quote -Iinc -Inope -isystem sys -idirafter after -MD -MF a.d -c a.c -o a.o": (
        "c", "a.c", "a.o"),
    "gcc -c a.c b.c -iquote quote -Iinc": ("c", "a.c b.c", "a.o b.o"),
    "gcc m.c b.c": ("c", "m.c b.c", "a.out"),
    "gcc m.c b.o -o prog": ("c", "m.c", "prog"),
    "gcc -S b.c": ("c", "b.c", "b.s"),
    "gcc -c s.S -o s.o": ("assembler", "s.S", "s.o"),
    "gcc -c t.s": ("assembler", "t.s", "t.o"),
    "gcc -x c -c -o in.o - < b.c": ("c", "b.c", "in.o"),
    "dash -c 'gcc -x c -c -o in2.o - < b.c; true'": ("c", "b.c", "in2.o"),
    "gcc -E b.c -o b.i": None,
    "gcc -M b.c": None,
    "gcc -fsyntax-only b.c": ("c", "b.c", ""),
    "gcc -c b.c -o /dev/null": ("c", "b.c", ""),
    "gcc --version": None,
    "gcc -c nope.c": None,
    "gcc b.o m.o -o linked": None,
    "g++ -c b.c -o bxx.o": ("c++", "b.c", "bxx.o"),
    "g++ p.cpp -o pxx": ("c++", "p.cpp", "pxx"),
    "gcc -flto m.c b.c -o lto": ("c", "m.c b.c", "lto"),
    "gcc -save-temps -c b.c -o temps.o": ("c", "b.c", "temps.o"),
    "gcc -pipe -c b.c -o piped.o": ("c", "b.c", "piped.o"),
    "gcc -gsplit-dwarf -g -c b.c -o split.o": ("c", "b.c", "split.o split.dwo"),
    "gcc -gsplit-dwarf -g m.c -o split": ("c", "m.c", "split split-m.dwo"),
    "gcc -gsplit-dwarf -g m.c b.c -o two": ("c", "m.c b.c", "two two-m.dwo two-b.dwo"),
    "g++ -std=c++20 -fmodules-ts -c z.cpp -o z.o": ("c++", "z.cpp", "z.o gcm.cache/zz.gcm"),
    "gcc h.h": ("c", "h.h", "h.h.gch"),
    "gcc @words": ("c", "b.c", "words.o"),
    "gcc -c link.c -iquote quote -Iinc": ("c", "a.c", "link.o"),
    "cc -m32 -c b.c -o b32.o": ("c", "b.c", "b32.o"),
    "clang -c b.c": ("c", "b.c", "b.o"),
    "clang m.c b.c -o cprog": ("c", "m.c b.c", "cprog cprog"),
    "clang -gsplit-dwarf -g m.c -o csplit": ("c", "m.c", "csplit m.dwo"),
    "clang -c m.c b.c -Iinc": ("c", "m.c b.c", "m.o b.o"),
    "clang++ -c p.cpp -o cp.o": ("c++", "p.cpp", "cp.o"),
    "clang -fno-integrated-cc1 -DX=1 -c b.c -o apart.o": ("c", "b.c", "apart.o"),
    "clang -c s.S -o cs.o": ("assembler", "s.S", "cs.o"),
    "clang -S b.c -o cb.s": ("c", "b.c", "cb.s"),
    "clang -save-temps -c b.c -o ctemps.o": ("c", "b.c", "ctemps.o b.bc"),
    "clang --driver-mode=cl /nologo /c /Foobj/ b.c m.c": ("c", "b.c m.c", "obj/b.obj obj/m.obj"),
    "clang --driver-mode=cl /c /TP b.c /Focxx": ("c++", "b.c", "cxx.obj"),
    "ccache gcc -c b.c -o missed.o": ("c", "b.c", "missed.o"),
    "ccache gcc -c b.c -o hit.o ": ("c", "b.c", "hit.o"),
    "as t.s -o bare.o": ("assembler", "t.s", "bare.o"),
    "rustc hello.rs -o hello": ("rust", "hello.rs", "hello"),
}  # fmt: skip
FILES = {
    "a.c": '#include "q.h"\n#include <i.h>\n#include <stdio.h>\nint a(void) { return Q + I; }\n',
    "b.c": "int b(void) { return 0; }\n",
    "m.c": "int main(void) { return 0; }\n",
    "p.cpp": "#include <vector>\nint main() { return std::vector<int>{0}[0]; }\n",
    "z.cpp": "export module zz;\nexport int f() { return 1; }\n",
    "s.S": ".globl s\ns: ret\n",
    "t.s": ".globl t\nt: ret\n",
    "h.h": "#define H 1\n",
    "quote/q.h": "#define Q 1\n",
    "inc/i.h": "#define I 1\n",
    "sys/unused.h": "",
    "after/unused.h": "",
    "obj/unused.h": "",
    "words": "-c 'b.c' -o words.o",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    """Run every command of EXPECTED in one capture; returns the directory and its database."""
    directory = tmp_path_factory.mktemp("compilers") / "build"
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "link.c").symlink_to("a.c")
    shutil.copy(DATA / "hello.rs", directory)
    script = "".join(f"{command} > /dev/null 2>&1\n" for command in EXPECTED)
    (directory / "build.sh").write_text(script)
    cache = directory.parent / "cache"
    captured = capture(["bash", "build.sh"], directory, env=os.environ | {"CCACHE_DIR": str(cache)})
    database = directory.parent / "database"
    database.mkdir()
    return directory, write_database(database, captured.trace.read_bytes())


def shown(found: Found, directory: Path) -> tuple[str, str, str]:
    def relative(paths: tuple[str, ...]) -> str:
        return " ".join(str(Path(path).relative_to(directory)) for path in paths)

    return found.language, relative(found.files), relative(found.objects)


def joined(parts: list[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Join the compilations of one command: clang makes one for each source."""
    return (parts[0][0], " ".join(p[1] for p in parts), " ".join(p[2] for p in parts))


def test_real_compilers_are_understood(built: tuple[Path, Image]) -> None:
    directory, image = built
    found = iter(find(image))
    result: dict[str, tuple[str, str, str] | None] = {}
    for command, expected in EXPECTED.items():
        wanted = 0 if expected is None else 1
        if command.startswith("clang") and len((expected or ("", "", ""))[1].split()) > 1:
            wanted = 2
        parts = [shown(next(found), directory) for _ in range(wanted)]
        result[command] = joined(parts) if parts else None
    assert result == EXPECTED
    assert list(found) == []


def test_the_output_is_what_the_command_line_names(built: tuple[Path, Image]) -> None:
    directory, image = built
    assert run.postprocess(image, config.load(directory), ["compilations"])
    outputs = {
        (" ".join(entry["arguments"]), Path(entry["file"]).name): entry["output"]
        for entry in compile_commands.entries(open_database(image.path))
        if "output" in entry
    }
    for command, (_, sources, made) in ((c, e) for c, e in EXPECTED.items() if e is not None):
        if "-gsplit" in command or "-fmodules" in command:
            for source in sources.split():
                one = command.replace("m.c b.c", source)
                assert outputs[one, source] == str(directory / made.split()[0])


def test_a_stage_of_clang_is_a_child_with_the_definitions_of_its_driver(
    built: tuple[Path, Image],
) -> None:
    directory, image = built
    (apart,) = [f for f in find(image) if f.objects == (f"{directory}/apart.o",)]
    assert (apart.is_child, apart.definitions) == (True, (("X", "1", False),))
    assert apart.argv0.endswith("clang")
    others = [f for f in find(image) if not f.argv0.endswith("clang")]
    assert not any(f.is_child for f in others)


def compilers_search_list(command: str, directory: Path) -> list[str]:
    """Ask the compiler in the build's directory, as etrace never does."""
    words = command.split()
    while "-o" in words:
        del words[words.index("-o") : words.index("-o") + 2]
    done = subprocess.run([*words, "-E", "-v"], cwd=directory, capture_output=True, check=True)
    listed = search_list(done.stderr) or ()
    paths = (os.path.realpath(directory / os.fsdecode(each)) for each in listed)
    return list(dict.fromkeys(paths))


@pytest.mark.parametrize(
    "command",
    [
        "gcc -iquote quote -Iinc -Inope -isystem sys -idirafter after -MD -MF a.d -c a.c -o a.o",
        "g++ p.cpp -o pxx",
        "cc -m32 -c b.c -o b32.o",
        "clang++ -c p.cpp -o cp.o",
        "clang -S b.c -o cb.s",
        "clang -fno-integrated-cc1 -DX=1 -c b.c -o apart.o",
        "gcc -c s.S -o s.o",
        "clang -c m.c b.c -Iinc",
    ],
)
def test_headers_are_searched_where_the_compiler_says(
    built: tuple[Path, Image], command: str, tmp_path: Path
) -> None:
    directory, image = built
    expected = EXPECTED[command]
    assert expected
    made = f"{directory}/{expected[2].split()[0]}"
    found = [f for f in find(image, Prober(1, run.say_nothing)) if made in f.objects]
    assert list(found[0].includes) == compilers_search_list(command, directory)


@pytest.mark.parametrize(
    "command",
    [
        "gcc -iquote quote -Iinc -Inope -isystem sys -idirafter after -MD -MF a.d -c a.c -o a.o",
        "g++ p.cpp -o pxx",
        "g++ -c b.c -o bxx.o",
        "gcc -c s.S -o s.o",
        "gcc @words",
        "ccache gcc -c b.c -o missed.o",
    ],
)
def test_gccs_own_directories_are_known_without_asking(
    built: tuple[Path, Image], command: str
) -> None:
    directory, image = built
    expected = EXPECTED[command]
    assert expected
    made = f"{directory}/{expected[2].split()[0]}"
    found = [f for f in find(image) if made in f.objects]
    command = command.removeprefix("ccache ")
    assert list(found[0].includes) == compilers_search_list(command, directory)


def test_without_compilers_only_their_own_directories_are_unknown(
    built: tuple[Path, Image], tmp_path: Path
) -> None:
    _, image = built
    without = find(image)
    probed = find(image, Prober(2, run.say_nothing))
    assert [replace(f, includes=()) for f in without] == [replace(f, includes=()) for f in probed]
    assert all(set(a.includes) <= set(b.includes) for a, b in zip(without, probed, strict=True))


def test_the_build_is_as_it_was_afterwards(built: tuple[Path, Image], tmp_path: Path) -> None:
    directory, image = built

    def snapshot() -> dict[Path, tuple[int, bytes]]:
        paths = sorted(directory.rglob("*"))
        return {p: (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in paths}

    before = snapshot()
    assert len(before) > len(FILES)
    assert find(image, Prober(2, run.say_nothing))
    assert snapshot() == before


# ---- CMake ----


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    """Configure the CMake project, capture its build; returns its build directory and database."""
    root = tmp_path_factory.mktemp("shapes")
    source, build = root / "shapes", root / "out"
    shutil.copytree(DATA / "cmake_project", source)
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", source, "-B", build], check=True, capture_output=True
    )
    captured = capture(["cmake", "--build", build], root)
    assert captured.status == 0
    database = root / "database"
    database.mkdir()
    return build, write_database(database, captured.trace.read_bytes())


def unquoted(command: str) -> tuple[str, ...]:
    script = 'for word; do printf "%s\\0" "$word"; done'
    done = subprocess.run(
        ["sh", "-c", f"set -- {command}\n{script}"], capture_output=True, check=True, text=True
    )
    return tuple(done.stdout.split("\0")[:-1])


def without_depfile(arguments: list[str]) -> tuple[str, ...]:
    """Leave out what Ninja's rules add to the commands that CMake lists: -MD -MT X -MF X."""
    at = arguments.index("-MD")
    return (*arguments[:at], *arguments[at + 5 :])


def test_the_exported_commands_are_those_of_cmake(shapes: tuple[Path, Image]) -> None:
    build, image = shapes
    expected = Counter(
        (each["directory"], each["file"], unquoted(each["command"]))
        for each in json.loads((build / "compile_commands.json").read_text())
    )
    assert run.postprocess(image, config.load(build), ["compilations"])
    again = open_database(image.path)
    found = compile_commands.entries(again)
    compared = ((e["directory"], e["file"], without_depfile(e["arguments"])) for e in found)
    assert Counter(compared) == expected
    assert len(expected) == 4
    objects = {str(path) for path in build.rglob("*.o")}
    assert {e["output"] for e in found} == objects


def test_every_header_of_a_depfile_lies_where_was_searched(
    shapes: tuple[Path, Image], tmp_path: Path
) -> None:
    build, image = shapes
    deps = subprocess.run(
        ["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True
    ).stdout
    found = {path: f for f in find(image, Prober(2, run.say_nothing)) for path in f.objects}
    n_headers = 0
    for block in deps.strip().split("\n\n"):
        target, *headers = block.splitlines()
        if not target.partition(":")[0].endswith(".o"):
            continue  # CMake since 3.27 has depfiles of links too
        compilation = found[str(build / target.partition(":")[0])]
        places = [Path(p) for p in compilation.includes]
        places += [Path(p).parent for p in (*compilation.files, *compilation.headers)]
        for header in headers:
            path = Path(os.path.realpath(build / header.strip()))
            assert str(path) in compilation.files or any(path.is_relative_to(p) for p in places)
            n_headers += 1
    assert n_headers > 50


def test_definitions_and_headers_of_cmake_are_found(shapes: tuple[Path, Image]) -> None:
    build, image = shapes
    found = {Path(f.files[0]).name: f for f in find(image)}
    assert found["area.c"].definitions == (
        ("EMPTY", "", False), ("NAME", '"a b"', False), ("SHAPE_BUILD", "1", False),
    )  # fmt: skip
    source = build.parent / "shapes"
    assert found["draw.cpp"].headers == (f"{source}/include/shape/common.h",)
    assert found["draw.cpp"].includes[:3] == (
        f"{build}/made", f"{source}/include", f"{source}/tools",
    )  # fmt: skip
    assert found["square one.cpp"].language == "c++"


# ---- the ancestor's sample ----


def test_the_lua_build_of_the_sample_has_its_34_compilations(tmp_path: Path) -> None:
    with lzma.open(GOLDEN / "lua.nfsdb.xz") as stream:
        image = write_database(tmp_path, stream.read())
    found = find(image)
    names = [Path(f.files[0]).stem for f in found]
    directory = "/tmp/b/lua-5.4.4/src"
    definitions = (("LUA_COMPAT_5_3", "1", False), ("LUA_USE_LINUX", "1", False))
    assert len(found) == 34
    assert sorted(names)[:3] == ["lapi", "lauxlib", "lbaselib"]
    own = "/usr/lib/gcc/x86_64-linux-gnu/12/include"
    system = (own, "/usr/local/include", "/usr/include/x86_64-linux-gnu", "/usr/include")
    assert all(set(f.includes) <= set(system) for f in found)  # what is there on this machine too
    assert [replace(f, includes=()) for f in found] == [
        Found("gcc", "c", (f"{directory}/{name}.c",), (f"{directory}/{name}.o",), (), definitions)
        for name in names
    ]
