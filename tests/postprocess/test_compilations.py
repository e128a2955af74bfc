# SPDX-License-Identifier: Apache-2.0
"""Which executions are compilations and what of, on builds written by hand. No compiler is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import TraceBuilder
from compiling import BuildTeller, Found, find, write_database

from etrace.nfsdb.store import open_database

CLANG = "/usr/lib/llvm-14/bin/clang"


def compiled(tmp_path: Path, build: TraceBuilder) -> list[Found]:
    return find(write_database(tmp_path, build.trace()))


def test_the_driver_of_gcc_carries_the_compilation_of_its_stages(tmp_path: Path) -> None:
    build = BuildTeller().gcc(
        10,
        "gcc -O2 -DA -D B=2 -DC= -UD -include x.h -MD -MF a.d -c a.c -o a.o",
        "/src/a.c",
        "/src/a.o",
    )
    assert compiled(tmp_path, build) == [
        Found(
            "gcc",
            files=("/src/a.c",),
            objects=("/src/a.o",),
            definitions=(("A", "1", False), ("B", "2", False), ("C", "", False), ("D", "", True)),
            headers=("/src/x.h",),
        )
    ]


@pytest.mark.parametrize(
    "command",
    [
        "gcc -E a.c -o a.i",
        "gcc -M a.c",
        "gcc -MM a.c",
        "gcc --version",
        "gcc -dumpmachine",
        "gcc -###  -c a.c",
        "gcc -print-prog-name=cc1 a.c",
        "gcc -print-file-name=plugin",
        "gcc a.o b.o -o prog",
        "gcc -v",
        "gcc",
        "gcc -c /dev/null -o x.o -x c",
        "gcc -x lto a.o",
        "g++ -shared -o libx.so a.o -lm",
    ],
)
def test_what_compiles_nothing_is_no_compilation(tmp_path: Path, command: str) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", command, writes=["/src/a.i"]).end(10)
    assert compiled(tmp_path, build) == []


def test_a_compilation_that_failed_is_none(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", writes=["/src/a.o"])
    assert compiled(tmp_path, build.end(10, status=1)) == []


def test_a_compilation_whose_end_was_not_seen_counts(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", writes=["/src/a.o"])
    assert compiled(tmp_path, build) == [Found("gcc", files=("/src/a.c",), objects=("/src/a.o",))]


def test_compiling_and_linking_in_one_makes_the_executable(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc a.c b.c c.o -o prog")
    build.run(11, "/usr/lib/cc1", "cc1 a.c", parent=10, writes=["/tmp/ccAAAAAA.s"])
    build.run(12, "/usr/bin/as", "as -o /tmp/ccBBBBBB.o", parent=10, writes=["/tmp/ccBBBBBB.o"])
    build.run(13, "/usr/lib/collect2", "collect2 -o prog", parent=10)
    build.run(14, "/usr/bin/ld", "ld -o prog", parent=13, writes=["/src/prog"])
    assert compiled(tmp_path, build.end(11, 12, 14, 13, 10)) == [
        Found("gcc", files=("/src/a.c", "/src/b.c"), objects=("/src/prog",))
    ]


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("gcc -c sub/a.c", "/src/a.o"),
        ("gcc -S sub/a.c", "/src/a.s"),
        ("gcc -c -S sub/a.c", "/src/a.s"),
        ("gcc sub/a.c", "/src/a.out"),
        ("gcc -c sub/a.c -ox", "/src/x"),
        ("gcc -c sub/a.c --output=../out/x.obj", "/out/x.obj"),
    ],
)
def test_what_is_made_without_o_is_named_as_gcc_names_it(
    tmp_path: Path, command: str, made: str
) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", command, writes=[made, "/src/a.d", "/src/a.gcno"])
    assert compiled(tmp_path, build.end(10)) == [
        Found("gcc", files=("/src/sub/a.c",), objects=(made,))
    ]


def test_an_output_in_tmp_that_was_asked_for_is_one(tmp_path: Path) -> None:
    build = BuildTeller().run(
        10,
        "/usr/bin/gcc",
        "gcc -c a.c -o /tmp/ccABCDEF.o",
        writes=["/tmp/ccABCDEF.s", "/tmp/ccABCDEF.o"],
    )
    assert compiled(tmp_path, build.end(10)) == [
        Found("gcc", files=("/src/a.c",), objects=("/tmp/ccABCDEF.o",))
    ]


def test_an_object_that_was_renamed_into_place_counts(tmp_path: Path) -> None:
    build = BuildTeller().run(10, CLANG, "clang -c a.c -o a.o", writes=["/src/a-12ab34.o.tmp"])
    build.rename(10, "/src/a-12ab34.o.tmp", "/src/a.o").end(10)
    assert compiled(tmp_path, build) == [Found("clang", files=("/src/a.c",), objects=("/src/a.o",))]


@pytest.mark.parametrize(
    ("command", "language"),
    [
        ("gcc -c a.c", "c"),
        ("gcc -c a.i", "c"),
        ("gcc -c a.cc", "c++"),
        ("gcc -c a.C", "c++"),
        ("g++ -c a.c", "c++"),
        ("g++ -x c -c a.cc", "c"),
        ("gcc -xc++ -c a.c", "c++"),
        ("gcc -c a.S", "assembler"),
        ("gcc -c a.s", "assembler"),
        ("g++ -c a.s", "assembler"),
        ("gcc -c a.m", "objective-c"),
        ("gcc -x assembler-with-cpp -c a.c", "assembler"),
        ("gcc -x c -c a.txt", "c"),
        ("gcc -c -x c++ a.txt -x none b.c", "c++"),
        ("gfortran -c a.f90", "fortran"),
        ("gcc -c a.h", "c"),
        ("clang++ -c a.cppm", "c++"),
        ("clang -x cuda -c a.cu", "cuda"),
    ],
)
def test_the_language_is_that_of_x_else_of_the_driver_and_extension(
    tmp_path: Path, command: str, language: str
) -> None:
    build = BuildTeller().run(10, f"/usr/bin/{command.split(maxsplit=1)[0]}", command).end(10)
    assert [each.language for each in compiled(tmp_path, build)] == [language]


# ---- clang ----


def test_an_integrated_clang_is_one_execution(tmp_path: Path) -> None:
    build = BuildTeller().run(10, CLANG, "clang++ -c a.cc -DX", writes=["/src/a.o"]).end(10)
    assert compiled(tmp_path, build) == [
        Found("clang++", "c++", ("/src/a.cc",), ("/src/a.o",), definitions=(("X", "1", False),))
    ]


def test_stages_of_clang_carry_what_their_driver_was_asked(tmp_path: Path) -> None:
    build = BuildTeller().run(10, CLANG, "clang -DX -Iinc a.c b.c -o prog")
    for upid, name in ((11, "a"), (12, "b")):
        build.run(
            upid, CLANG,
            f"{CLANG} -cc1 -triple x86_64 -main-file-name {name}.c -D X"
            " -D __GCC_HAVE_DWARF2_CFI_ASM=1 -I inc -internal-isystem /usr/include"
            f" -ferror-limit 19 -o /tmp/{name}-0123ab.o"
            f" -x c {name}.c",
            parent=10,
            writes=[f"/tmp/{name}-0123ab.o"],
            reads=["/src/inc/i.h", "/usr/include/stdio.h"],
        )  # fmt: skip
    build.run(13, "/usr/bin/ld", "ld -o prog", parent=10, writes=["/src/prog"]).end(11, 12, 13, 10)
    common = {
        "objects": ("/src/prog",),
        "includes": ("/src/inc", "/usr/include"),
        "definitions": (("X", "1", False),),
        "is_child": True,
    }
    assert compiled(tmp_path, build) == [
        Found(CLANG, files=("/src/a.c",), **common),  # type: ignore[arg-type]
        Found(CLANG, files=("/src/b.c",), **common),  # type: ignore[arg-type]
    ]


def test_a_stage_without_a_driver_is_a_compilation_of_its_own(tmp_path: Path) -> None:
    build = BuildTeller().run(
        10, CLANG, "clang -cc1 -emit-obj -D X -o a.o -x c a.c", writes=["/src/a.o"]
    )
    build.run(11, "/usr/lib/cc1", "cc1 -quiet -D Y b.c -MD b.d -o b.s", writes=["/src/b.s"])
    assert compiled(tmp_path, build.end(10, 11)) == [
        Found("clang", "c", ("/src/a.c",), ("/src/a.o",), definitions=(("X", "1", False),)),
        Found("cc1", "c", ("/src/b.c",), ("/src/b.s",), definitions=(("Y", "1", False),)),
    ]


def test_with_save_temps_the_driver_of_clang_compiles_the_source(tmp_path: Path) -> None:
    build = BuildTeller().run(10, CLANG, "clang -save-temps -c a.c")
    build.run(11, CLANG, "clang -cc1 -E -o a.i -x c a.c", parent=10, writes=["/src/a.i"])
    build.run(12, CLANG, "clang -cc1 -S -o a.s -x cpp-output a.i", parent=10, writes=["/src/a.s"])
    build.run(13, CLANG, "clang -cc1as -o a.o a.s", parent=10, writes=["/src/a.o"])
    assert compiled(tmp_path, build.end(11, 12, 13, 10)) == [
        Found("clang", files=("/src/a.c",), objects=("/src/a.o",))
    ]


# ---- launchers ----


def test_on_a_hit_of_ccache_its_argv_says_the_compilation(tmp_path: Path) -> None:
    build = BuildTeller().run(
        10, "/usr/bin/ccache", "ccache gcc -DX -c a.c -o a.o", writes=["/src/a.o.tmp.1"]
    )
    build.rename(10, "/src/a.o.tmp.1", "/src/a.o").end(10)
    assert compiled(tmp_path, build) == [
        Found("ccache", "c", ("/src/a.c",), ("/src/a.o",), definitions=(("X", "1", False),))
    ]


def test_on_a_miss_of_ccache_the_compiler_carries_it(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/ccache", "ccache gcc -c a.c -o a.o")
    build.run(
        20, "/usr/bin/gcc", "gcc -E -o /root/tmp/x.i a.c", parent=10, writes=["/root/tmp/x.i"]
    )
    build.run(30, "/usr/bin/gcc", "gcc -c -o a.o a.c", parent=10, writes=["/src/a.o"])
    assert compiled(tmp_path, build.end(20, 30, 10)) == [
        Found("gcc", files=("/src/a.c",), objects=("/src/a.o",))
    ]


def test_a_launcher_that_compiles_what_it_preprocessed_carries_it_itself(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/ccache", "ccache gcc -c a.c -o a.o")
    build.run(20, "/usr/bin/gcc", "gcc -c -o a.o /root/tmp/x.i", parent=10, writes=["/src/a.o"])
    assert compiled(tmp_path, build.end(20, 10)) == [
        Found("ccache", files=("/src/a.c",), objects=("/src/a.o",))
    ]


@pytest.mark.parametrize(
    ("binary", "command"),
    [
        ("/usr/lib/ccache/gcc", "gcc -c a.c"),
        ("/usr/bin/ccache", "gcc -c a.c"),
        ("/usr/bin/ccache", "ccache debug=true gcc -c a.c"),
        ("/usr/bin/distcc", "distcc /usr/bin/gcc -c a.c"),
        ("/usr/bin/ccache", "ccache distcc gcc -c a.c"),
        ("/usr/bin/sccache", "sccache x86_64-linux-gnu-gcc-12 -c a.c"),
        ("/usr/libexec/icecc/bin/gcc", "gcc -c a.c"),
    ],
)
def test_launchers_are_seen_through(tmp_path: Path, binary: str, command: str) -> None:
    build = BuildTeller().run(10, binary, command, writes=["/src/a.o"]).end(10)
    expected = Found(command.split(maxsplit=1)[0], files=("/src/a.c",), objects=("/src/a.o",))
    assert compiled(tmp_path, build) == [expected]


@pytest.mark.parametrize(
    "command", ["ccache -s", "ccache", "distcc --show-hosts", "pump make -c a.c"]
)
def test_a_launcher_of_nothing_compiles_nothing(tmp_path: Path, command: str) -> None:
    build = BuildTeller().run(10, f"/usr/bin/{command.split(maxsplit=1)[0]}", command).end(10)
    assert compiled(tmp_path, build) == []


def test_a_wrapper_under_the_compilers_name_is_not_counted_twice(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/opt/wrap/gcc", "gcc -c a.c")
    build.exec(10, "/usr/bin/gcc", ["gcc", "-O2", "-c", "a.c"]).use(10, "/src/a.o", flags=0o101)
    assert compiled(tmp_path, build.end(10)) == [
        Found("gcc", files=("/src/a.c",), objects=("/src/a.o",))
    ]


def test_what_a_compiler_compiles_of_its_own_making_is_part_of_it(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/local/cuda/bin/nvcc", "nvcc -c k.cu -o k.o")
    build.run(20, "/usr/bin/gcc", "gcc -c /tmp/tmpxft_1.cpp -o k.o", parent=10, writes=["/src/k.o"])
    assert compiled(tmp_path, build.end(20, 10)) == [
        Found("nvcc", "cuda", ("/src/k.cu",), ("/src/k.o",))
    ]


def test_compilers_that_started_each_other_end(tmp_path: Path) -> None:
    entries = [
        {"p": upid, "x": index, "b": "/usr/bin/gcc" * index, "w": "/src", "v": ["gcc", "-c", "a.c"],
         "r": {"p": parent, "x": 1}, "c": [{"p": parent, "f": 0}] * index}
        for upid, parent in ((1, 2), (2, 1))
        for index in (0, 1)
    ]  # fmt: skip
    (tmp_path / ".nfsdb.json").write_text(json.dumps(entries))
    assert find(open_database(tmp_path)) == []  # each belongs to the other


# ---- paths ----


def test_sources_and_directories_are_what_they_led_to(tmp_path: Path) -> None:
    build = BuildTeller().gcc(
        10, "gcc -I../link/inc -c ../link/a.c -o ../out/a.o", "/real/a.c", "/out/a.o", cwd="/src/b"
    )
    build.use(11, "/real/a.c", original="/src/b/../link/a.c")
    build.use(11, "/real/inc/i.h", original="/src/b/../link/inc/i.h")
    assert compiled(tmp_path, build) == [
        Found("gcc", files=("/real/a.c",), objects=("/out/a.o",), includes=("/real/inc",))
    ]


def test_directories_come_in_the_order_of_the_search(tmp_path: Path) -> None:
    build = BuildTeller().gcc(
        10,
        "gcc -c a.c -idirafter af -isystem sy -I in -I sy -iquote qu -Iin -I. --sysroot=/r -I=/x"
        " -iquote in",
        "/src/a.c",
        "/src/a.o",
    )
    build.env("CPATH=/cp:", 10).env("C_INCLUDE_PATH=/ci", 10).env("CPLUS_INCLUDE_PATH=/cx", 10)
    assert compiled(tmp_path, build)[0].includes == (
        "/src/qu", "/src/in", "/src", "/r/x", "/cp", "/src/sy", "/ci", "/src/af",
    )  # fmt: skip


def test_directories_that_are_known_not_to_exist_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    build = BuildTeller().run(
        10, "/usr/bin/gcc", "gcc -Inever -Ithere -Iused -c a.c", cwd=str(tmp_path),
        reads=[f"{tmp_path}/used/x.h"],
    )  # fmt: skip
    found = compiled(tmp_path, build.end(10))
    assert found[0].includes == (f"{tmp_path}/there", f"{tmp_path}/used")


def test_a_header_of_the_command_line_is_looked_for_where_the_compiler_looks(
    tmp_path: Path,
) -> None:
    build = BuildTeller().run(
        10,
        "/usr/bin/gcc",
        "gcc -Iinc -include own.h --include=i.h -imacros gone.h -include /abs.h -c a.c",
        reads=["/src/own.h", "/src/inc/own.h", "/src/inc/i.h"],
    )
    found = compiled(tmp_path, build.end(10))
    assert found[0].headers == ("/src/own.h", "/src/inc/i.h", "/src/gone.h", "/abs.h")


def test_the_standard_input_is_the_file_that_a_shell_opened(tmp_path: Path) -> None:
    build = BuildTeller().run(
        10, "/usr/bin/gcc", "gcc -x c -c -o a.o -", before=["/src/in.c"], writes=["/src/a.o"]
    )
    build.run(20, "/usr/bin/gcc", "gcc -x c -c -o b.o -", writes=["/src/b.o"])
    assert compiled(tmp_path, build.end(10, 20)) == [
        Found("gcc", files=("/src/in.c",), objects=("/src/a.o",)),
        Found("gcc", files=("/dev/stdin",), objects=("/src/b.o",)),
    ]


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    argv: list[str | bytes] = [b"gcc", b"-DN=\xff", b"-c", b"z\xc5\xbc\xfe.c"]
    build = BuildTeller().run(10, "/usr/bin/gcc", argv, writes=[b"/src/z\xc5\xbc\xfe.o"]).end(10)
    assert compiled(tmp_path, build) == [
        Found("gcc", "c", ("/src/zż\udcfe.c",), ("/src/zż\udcfe.o",), (), (("N", "\udcff", False),))
    ]


def test_response_files_are_read_and_gone_ones_cost_what_they_held(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("-DX='a b' a.c")
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc @words -c", cwd=str(tmp_path))
    build.run(20, "/usr/bin/gcc", "gcc @gone -c b.c", cwd=str(tmp_path)).end(10, 20)
    found = compiled(tmp_path, build)
    assert [(each.files, each.definitions) for each in found] == [
        ((f"{tmp_path}/a.c",), (("X", "a b", False),)),
        ((f"{tmp_path}/b.c",), ()),
    ]


@pytest.mark.parametrize(
    ("binary", "command", "expected"),
    [
        (
            "rustc",
            "rustc --crate-name x --edition=2021 src/lib.rs --out-dir t",
            ("rust", "src/lib.rs", "t/libx.rlib"),
        ),
        ("javac", "javac -cp x.jar -d out A.java", ("java", "A.java", "out/A.class")),
        ("swiftc", "swiftc -module-name m a.swift -o m", ("swift", "a.swift", "m")),
        ("nasm", "nasm -f elf64 -DX a.asm -o a.o", ("assembler", "a.asm", "a.o")),
        ("nasm", "nasm -felf64 a.asm", ("assembler", "a.asm", "a.o")),
        ("yasm", "yasm -f elf64 -m amd64 a.asm -o a.o", ("assembler", "a.asm", "a.o")),
        ("as", "as --64 -o a.o a.s", ("assembler", "a.s", "a.o")),
        ("gfortran", "gfortran -J mod -c a.f90", ("fortran", "a.f90", "a.o")),
        ("tcc", "tcc -c a.c", ("c", "a.c", "a.o")),
        ("icx", "icx -c a.c", ("c", "a.c", "a.o")),
        ("armcc", "armcc --cpu Cortex-M3 -c a.c -o a.o", ("c", "a.c", "a.o")),
        ("zig", "zig cc -target x86_64-linux-musl -c a.c", ("c", "a.c", "a.o")),
        (
            "go/pkg/tool/linux_amd64/compile",
            "compile -o a.a -p main -complete ./a.go",
            ("go", "a.go", "a.a"),
        ),
        (
            "go/pkg/tool/linux_amd64/asm",
            "asm -p main -trimpath x=> -I b001/ -D GOOS_linux -o a_amd64.o ./a_amd64.s",
            ("assembler", "a_amd64.s", "a_amd64.o"),
        ),
    ],
)
def test_other_languages_have_sources_and_outputs(
    tmp_path: Path, binary: str, command: str, expected: tuple[str, str, str]
) -> None:
    language, source, made = expected
    build = BuildTeller().run(
        10, f"/usr/bin/{binary}", command, writes=[f"/src/{made}", "/src/log"]
    )
    argv0 = command.split(maxsplit=1)[0]
    (found,) = compiled(tmp_path, build.end(10))
    assert (found.argv0, found.language) == (argv0, language)
    assert (found.files, found.objects) == ((f"/src/{source}",), (f"/src/{made}",))
