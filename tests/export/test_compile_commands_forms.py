# SPDX-License-Identifier: Apache-2.0
"""Forms of compile_commands.json that users ask for: paths, strings, headers, links, merging."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import Text
from compiling import CREATE, BuildTeller, write_database
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.depend import configuration as config
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.export.command_lines import PathStyle
from etrace.export.compile_commands import Form, entries, link_entries
from etrace.export.merging import Merge, merged, read
from etrace.nfsdb.products import add_responses
from etrace.nfsdb.store import open_database
from etrace.postprocess import run
from etrace.query import diagnosis
from etrace.query.select import sources
from etrace.query.select.sources import SourceSelection

Say = Callable[[BuildTeller], object]


def database(tmp_path: Path, build: BuildTeller, files: dict[str, bytes] | None = None) -> Image:
    """Post-process a made build; `files` are the response files of its last process."""
    image = write_database(tmp_path, build.trace())
    if files:
        upid = image["executions"]["upid"][-1]
        add_responses(image.path, [(upid, name.encode(), text) for name, text in files.items()])
        image = open_database(tmp_path)
    run.postprocess(image, config.load(tmp_path), ["compilations", "linked"])
    return open_database(image.path)


def arguments(image: Image, form: Form | None = None) -> list[str]:
    return [shlex.join(each["arguments"]) for each in entries(image, form=form)]


# ---- one entry for each unit ----


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("gcc -c a.c b.c -O2", ["gcc -c a.c -O2", "gcc -c b.c -O2"]),
        ("gcc a.c b.c b2.o -o prog -lm", ["gcc a.c b2.o -o prog -lm", "gcc b.c b2.o -o prog -lm"]),
        ("gcc -c -DF=a.c -include a.c ./a.c x/../b.c", [
            "gcc -c -DF=a.c -include a.c ./a.c", "gcc -c -DF=a.c -include a.c x/../b.c",
        ]),
        ("gcc -c a.c a.c", ["gcc -c a.c a.c"]),
    ],
)  # fmt: skip
def test_an_entry_names_no_source_but_its_own(
    tmp_path: Path, command: str, expected: list[str]
) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", command, reads=["/src/a.c", "/src/b.c"])
    assert arguments(database(tmp_path, build.end(10))) == expected


def test_compilers_of_whole_packages_keep_all_sources(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/javac", "javac A.java B.java").end(10)
    assert arguments(database(tmp_path, build)) == ["javac A.java B.java"] * 2


# ---- response files ----


def test_response_files_are_expanded_in_place(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc @all -DX").end(10)
    image = database(
        tmp_path, build, {"/src/all": b"-c '@in ner' a.c", "/src/in ner": b"-DA='b c'"}
    )
    assert arguments(image) == ["gcc -c '-DA=b c' a.c -DX"]
    assert arguments(image, Form(expands=False)) == ["gcc @all -DX"]


def test_a_response_file_that_is_gone_stays_an_argument(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c @gone", reads=["/src/a.c"]).end(10)
    assert arguments(database(tmp_path, build)) == ["gcc -c a.c @gone"]


def test_those_of_a_launched_compiler_are_the_launchers(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/ccache", "ccache gcc @all").end(10)
    image = database(tmp_path, build, {"/src/all": b"-c a.c -o a.o"})
    assert arguments(image) == ["gcc -c a.c -o a.o"]


# ---- paths ----


@pytest.fixture
def linked_tree(tmp_path: Path) -> Image:
    """/work is a symbolic link to /data/work, and link.c to /src/real.c."""
    build = BuildTeller().run(
        10, "/usr/bin/gcc", "gcc -c ../work/a.c -o out/a.o", cwd="/src/x",
        reads=[("/src/x/../work/a.c", "/data/work/a.c")],
        writes=["/src/x/out/a.o"],
    )  # fmt: skip
    build.run(11, "/usr/bin/gcc", "gcc -c link.c", reads=[("/src/link.c", "/src/real.c")],
             writes=["/src/link.o"])  # fmt: skip
    return database(tmp_path, build.end(10, 11))


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("as-is", [("../work/a.c", "out/a.o"), ("link.c", "link.o")]),
        ("absolute", [("/data/work/a.c", "/src/x/out/a.o"), ("/src/link.c", "/src/link.o")]),
        ("relative", [("../../data/work/a.c", "out/a.o"), ("link.c", "link.o")]),
        ("canonical", [("/data/work/a.c", "/src/x/out/a.o"), ("/src/real.c", "/src/link.o")]),
    ],
)
def test_paths_are_written_in_four_styles(
    linked_tree: Image, style: str, expected: list[tuple[str, str]]
) -> None:
    found = entries(linked_tree, form=Form(PathStyle(style)))
    assert [(each["file"], each["output"]) for each in found] == expected
    assert [each["directory"] for each in found] == ["/src/x", "/src"]


def test_standard_input_has_no_name_of_its_own(tmp_path: Path) -> None:
    build = BuildTeller().fork(1, 10).use(10, "/src/a.c")
    build.exec(10, "/usr/bin/gcc", ["gcc", "-x", "c", "-c", "-", "-o", "a.o"]).exit(10, 0)
    found = entries(database(tmp_path, build), form=Form(PathStyle.AS_IS))
    assert [each["file"] for each in found] == ["/src/a.c"]


# ---- strings ----


@settings(deadline=None, max_examples=30)
@given(words=st.lists(st.text(min_size=1).filter(lambda text: "\0" not in text), max_size=3))
def test_a_string_is_the_arguments_for_a_shell(
    words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = [f"-DX={word.encode('utf-8', 'replace').decode()}" for word in words]
    argv: list[Text] = ["gcc", "-c", "a.c", *words]
    build = BuildTeller().run(10, "/usr/bin/gcc", argv, reads=["/src/a.c"]).end(10)
    image = database(tmp_path_factory.mktemp("string"), build)
    (entry,) = entries(image, form=Form(is_text=True))
    assert "arguments" not in entry
    assert shlex.split(entry["command"]) == argv
    script = 'for word; do printf "%s\\0" "$word"; done'
    command = f"set -- {entry['command']}\n{script}".encode()
    shown = subprocess.run(["sh"], input=command, capture_output=True, check=True).stdout
    assert shown.decode().split("\0")[:-1] == argv


# ---- headers ----


def test_headers_have_the_options_of_the_source_that_fits_best(tmp_path: Path) -> None:
    build = BuildTeller()
    for upid, name in ((10, "main"), (11, "util")):
        build.run(
            upid, "/usr/bin/g++", f"g++ -O{upid} -MD -MF x.d -MT y -c {name}.cc -o {name}.o",
            reads=[f"/src/{name}.cc", "/src/util.h", "/src/only.hpp", "/usr/include/stdio.h"],
            writes=[f"/src/{name}.o"],
        ).end(upid)  # fmt: skip
    image = database(tmp_path, build)
    found = entries(image, form=Form(with_headers=True))[2:]
    check = "-fsyntax-only -x c++-header"
    assert found == [
        {
            "directory": "/src",
            "arguments": f"g++ -O{level} {check} /src/{name}".split(),
            "file": f"/src/{name}",
        }
        for level, name in ((10, "only.hpp"), (11, "util.h"))
    ]
    choice = SourceSelection(sources.ruled([(False, b"*.hpp")]))
    kept = entries(image, choice=choice, form=Form(with_headers=True))
    assert [Path(each["file"]).name for each in kept] == ["main.cc", "util.cc", "util.h"]


# ---- links ----


def test_links_have_the_command_of_the_driver(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/ccache", "ccache gcc -o prog a.o @libs")
    build.run(11, "/usr/bin/gcc", "gcc -o prog a.o @libs", parent=10)
    build.run(12, "/usr/lib/gcc/x86_64-linux-gnu/12/collect2", "collect2 -o prog", parent=11)
    build.run(13, "/usr/bin/ld", "/usr/bin/ld -o prog a.o", parent=12, reads=["/src/a.o"],
             writes=["/src/prog"])  # fmt: skip
    build.end(13, 12, 11, 10)
    build.run(20, "/usr/bin/ar", "ar rcs lib/x.a a.o", reads=["/src/a.o"],
             writes=["/src/lib/x.a"]).end(20)  # fmt: skip
    image = database(tmp_path, build)
    assert link_entries(image, Form(PathStyle.RELATIVE)) == [
        {
            "directory": "/src",
            "arguments": ["gcc", "-o", "prog", "a.o", "@libs"],
            "output": "prog",
            "kind": "executable",
        },
        {
            "directory": "/src",
            "arguments": ["ar", "rcs", "lib/x.a", "a.o"],
            "output": "lib/x.a",
            "kind": "archive",
        },
    ]
    assert entries(image) == []


# ---- which sources ----


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ([(True, b"/p/src")], ["/p/src/a.c", "/p/src/gen/b.c"]),
        ([(False, b"/p/src/gen")], ["/p/src/a.c", "/p/lib/c.cc"]),
        ([(False, b"/p/src"), (True, b"gen/*.c")], ["/p/src/gen/b.c", "/p/lib/c.cc"]),
        ([(True, b"*.c"), (False, b"/p/src/a.c")], ["/p/src/gen/b.c"]),
        ([(False, b"*")], []),
    ],
)
def test_the_last_rule_that_matches_decides(
    rules: list[tuple[bool, bytes]], kept: list[str]
) -> None:
    choice = SourceSelection(sources.ruled(rules))
    files = ["/p/src/a.c", "/p/src/gen/b.c", "/p/lib/c.cc"]
    assert [file for file in files if choice.takes(file.encode())] == kept


# ---- entries that are there ----


def entry(file: str, *words: str, **more: Any) -> dict[str, Any]:
    return {"directory": "/src", "file": file, "arguments": ["gcc", *words], **more}


def test_appending_keeps_all_and_updating_only_other_files(tmp_path: Path) -> None:
    path = tmp_path / "cc.json"
    old = [entry("a.c", "-O0", x=1), entry("/src/b.c"), entry("c.c")]
    path.write_text(json.dumps(old))
    new = [entry("/src/a.c", "-O2"), entry("c.c")]
    assert merged(path, new, Merge.APPEND) == [*old, new[0]]
    assert merged(path, new, Merge.UPDATE) == [old[1], *new]


def test_without_a_file_the_new_entries_are_all(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("none", "empty"):
        assert merged(tmp_path / name, [entry("a.c")], Merge.UPDATE) == [entry("a.c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{", "not JSON"),
        ("[" * 100000, "not JSON"),
        ("{}", "not an array"),
        ('[{"directory": "/", "file": "a.c"}, {"file": 1}]', "entry 1 has no"),
        ("[1]", "entry 0 has no"),
    ],
)
def test_what_is_no_database_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cc.json"
    path.write_text(text)
    with pytest.raises(EtraceError, match=message) as caught:
        read(path)
    assert str(path) in caught.value.message


# ---- why there are few ----


def diagnosed(tmp_path: Path, say: Say) -> diagnosis.Diagnosis:
    build = BuildTeller()
    say(build)
    return diagnosis.diagnose(database(tmp_path, build))


def test_a_program_that_compiles_but_is_not_known_is_named(tmp_path: Path) -> None:
    def say(build: BuildTeller) -> None:
        for upid, name in ((10, "a"), (11, "b")):
            build.run(upid, "/opt/vc", f"vc -c {name}.c", reads=[f"/src/{name}.c"],
                     writes=[f"/src/{name}.o"]).end(upid)  # fmt: skip
        build.run(12, "/bin/cp", "cp a.o b.o", reads=["/src/a.o"], writes=["/src/b.o"]).end(12)

    found = diagnosed(tmp_path, say)
    assert (found.n_programs, found.n_compilers) == (4, 0)
    assert found.unknown == {b"/opt/vc": 2}
    assert found.others == {b"/opt/vc": 2, b"/bin/cp": 1, b"/usr/bin/make": 1}


def test_a_stage_of_a_known_compiler_is_not_missed(tmp_path: Path) -> None:
    def say(build: BuildTeller) -> None:
        build.run(10, "/usr/bin/gcc", "gcc -c a.c")
        build.run(11, "/opt/own-as", "own-as", parent=10, reads=["/src/a.s"], writes=["/src/a.o"])
        build.end(11, 10).run(20, "/usr/bin/gcc", "gcc -c b.c").end(20, status=1)

    found = diagnosed(tmp_path, say)
    assert (found.n_compilers, found.n_failed, found.unknown) == (2, 1, {})


def test_a_compiler_inside_another_program_is_named_with_its_sources(tmp_path: Path) -> None:
    """As ant does, which compiles in a thread."""

    def say(build: BuildTeller) -> None:
        build.run(10, "/usr/bin/java", "java org.apache.tools.ant.Main", reads=["ant.jar"])
        build.thread(10, 11)
        for name in ("A", "B"):
            build.use(11, f"/src/{name}.java").use(11, f"/src/out/{name}.class", flags=CREATE)
        build.end(11, 10)
        build.run(20, "/bin/cp", "cp -r src to", reads=["/src/A.java", "/src/out/A.class"],
                 writes=["/to/A.java", "/to/A.class"]).end(20)  # fmt: skip

    found = diagnosed(tmp_path, say)
    assert (found.unknown, found.inside) == ({}, {b"Ant in /usr/bin/java": 2})


def test_modules_of_one_name_in_two_directories_are_two_sources(tmp_path: Path) -> None:
    """As GHC does: a module has an interface and an object; literate sources count, too."""

    def say(build: BuildTeller) -> None:
        build.run(10, "/usr/bin/ghc", "ghc --make")
        for name, suffix in (("A/Types", "hs"), ("B/Types", "hs"), ("Lit", "lhs"), ("Main", "hs")):
            build.use(10, f"/src/{name}.{suffix}")
            for written in ("hi", "o", "dyn_hi"):
                build.use(10, f"/src/{name}.{written}", flags=CREATE)
            build.use(10, f"/src/{name}.hi")  # it reads what it wrote
        build.end(10)

    found = diagnosed(tmp_path, say)
    assert (found.unknown, found.inside) == ({}, {b"/usr/bin/ghc": 4})


def of_launcher(words: str, *writes: str) -> Say:
    def say(build: BuildTeller) -> None:
        build.run(10, "/usr/bin/sccache", words, reads=["/src/a.c"])
        build.end(10).run(20, "/usr/bin/tool", "tool", writes=writes).end(20)

    return say


@pytest.mark.parametrize(
    ("say", "elsewhere"),
    [
        (of_launcher("sccache gcc -c a.c -o a.o"), {b"sccache": 1}),
        (of_launcher("sccache env A=b nice -n 5 gcc -c a.c -o a.o"), {b"sccache": 1}),
        (of_launcher("sccache rustc a.rs --out-dir out", "/src/other"), {b"sccache": 1}),
        (of_launcher("sccache rustc a.rs --out-dir out", "/src/out/liba.rlib"), {}),
        (of_launcher("sccache gcc -c a.c -o a.o", "/src/a.o"), {}),
        (of_launcher("sccache gcc -c a.c -o /dev/null"), {}),
        (of_launcher("sccache gcc -fsyntax-only a.c"), {}),
        (of_launcher("sccache --show-stats"), {}),
    ],
)
def test_what_a_server_outside_of_the_trace_compiled_is_counted(
    tmp_path: Path, say: Say, elsewhere: dict[bytes, int]
) -> None:
    found = diagnosed(tmp_path, say)
    assert found.elsewhere == elsewhere
    cures = [note.cure for note in found.notes()]
    assert [cure.partition("; or")[0] for cure in cures] == [
        "before the capture: sccache --stop-server"
    ] * len(elsewhere)


def of_client(path: str, words: str, *below: tuple[str, str, Sequence[str]]) -> Say:
    def say(build: BuildTeller) -> None:
        build.run(10, path, words)
        for upid, (program, argv, writes) in enumerate(below, 11):
            read = [name.replace(".o", ".c") for name in writes]
            build.run(upid, program, argv, parent=10, reads=read, writes=writes).end(upid)
        build.end(10)

    return say


GRADLE = "java -cp g.jar org.gradle.launcher.GradleMain"


@pytest.mark.parametrize(
    ("say", "silent"),
    [
        (of_client("/usr/bin/bazel", "bazel build //..."), {b"Bazel": 1}),
        (of_client("/usr/bin/bazel", "bazel shutdown"), {}),
        (
            of_client("/usr/bin/bazel", "bazel build x", ("/j/java", "bazel(x) A-server.jar", ())),
            {},
        ),
        (of_client("/usr/bin/buck2", "buck2 build x", ("/c/vc", "vc a.c", ["/src/a.o"])), {}),
        (of_client("/usr/bin/java", f"{GRADLE} build"), {b"Gradle": 1}),
        (of_client("/usr/bin/java", f"{GRADLE} --stop"), {}),
        (of_client("/usr/bin/mvnd", "mvnd package"), {b"mvnd": 1}),
        (of_client("/usr/bin/make", "make bazel"), {}),
    ],
)
def test_a_client_below_which_nothing_was_compiled_is_counted(
    tmp_path: Path, say: Say, silent: dict[bytes, int]
) -> None:
    assert diagnosed(tmp_path, say).silent == silent
    assert diagnosis.unlisted(database(tmp_path, _built(say))).silent == silent


def _built(say: Say) -> BuildTeller:
    build = BuildTeller()
    say(build)
    return build
