# SPDX-License-Identifier: Apache-2.0
"""Entries of compile_commands.json on a build written by hand.

CMake's own are the oracle in tests/postprocess/test_compilations_captured.py.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database
from libetrace.depend import configuration as config
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.export import compile_commands
from etrace.nfsdb.store import open_database
from etrace.postprocess import run

CLANG = "/usr/lib/llvm-14/bin/clang"


@pytest.fixture
def image(tmp_path: Path) -> Image:
    build = BuildTeller().run(
        10, "/usr/bin/gcc", "gcc -c ../a.c b.c", cwd="/src/x", writes=["/src/x/a.o", "/src/x/b.o"]
    )
    build.run(20, CLANG, "clang c.c -o c")
    build.run(21, CLANG, "clang -cc1 -o /tmp/c-123abc.o -x c c.c", parent=20)
    build.run(22, "/usr/bin/ld", "ld -o c", parent=20, writes=["/src/c"])
    argv: list[str | bytes] = ["gcc", "-fsyntax-only", b"\xff.c"]
    build.run(30, "/usr/bin/gcc", argv).end(10, 21, 22, 20, 30)
    image = write_database(tmp_path, build.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    return open_database(image.path)


def test_each_file_is_an_entry_with_the_command_of_its_driver(image: Image) -> None:
    assert compile_commands.entries(image) == [
        {
            "directory": "/src/x",
            "arguments": ["gcc", "-c", "../a.c"],
            "file": "/src/a.c",
            "output": "/src/x/a.o",
        },
        {
            "directory": "/src/x",
            "arguments": ["gcc", "-c", "b.c"],
            "file": "/src/x/b.c",
            "output": "/src/x/b.o",
        },
        {
            "directory": "/src",
            "arguments": ["clang", "c.c", "-o", "c"],
            "file": "/src/c.c",
            "output": "/src/c",
        },
        {
            "directory": "/src",
            "arguments": ["gcc", "-fsyntax-only", "\udcff.c"],
            "file": "/src/\udcff.c",
        },
    ]


@pytest.mark.parametrize(
    ("launcher", "command"),
    [
        ("/usr/bin/ccache", "ccache gcc -c a.c -o a.o"),
        ("/usr/bin/ccache", "gcc -c a.c -o a.o"),  # /usr/lib/ccache/gcc is a link to it
        ("/usr/bin/distcc", "distcc gcc -c a.c -o a.o"),
        ("/usr/bin/sccache", "sccache gcc -c a.c -o a.o"),
        ("/usr/bin/icecc", "icecc gcc -c a.c -o a.o"),
        ("/usr/bin/ccache", "ccache CCACHE_PREFIX=distcc distcc gcc -c a.c -o a.o"),
    ],
)
def test_hits_and_misses_of_a_launcher_have_the_same_command(
    tmp_path: Path, launcher: str, command: str
) -> None:
    build = BuildTeller().run(10, launcher, command, reads=["/src/a.c"])
    build.run(20, "/usr/bin/gcc", "/usr/bin/gcc -fdiagnostics-color -c -o a.o a.c", parent=10,
             reads=["/src/a.c"], writes=["/src/a.o"])  # fmt: skip
    build.end(20, 10).run(30, launcher, command, reads=["/src/a.c"], writes=["/src/a.o"]).end(30)
    image = write_database(tmp_path, build.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    found = compile_commands.entries(open_database(image.path))
    wanted = {
        "directory": "/src",
        "arguments": ["gcc", "-c", "a.c", "-o", "a.o"],
        "file": "/src/a.c",
        "output": "/src/a.o",
    }
    assert found == [wanted]


def test_the_last_command_that_wrote_an_object_is_its_entry(tmp_path: Path) -> None:
    build = BuildTeller()
    commands = ("gcc -c a.c", "gcc -c a.c -o b.o", "gcc -c -O2 a.c", "gcc -c -O2 a.c")
    for pid, command in enumerate(commands, 10):
        made = "/src/b.o" if "b.o" in command else "/src/a.o"
        build.run(pid, "/usr/bin/gcc", command, reads=["/src/a.c"], writes=[made]).end(pid)
    for pid in (20, 21):
        build.run(pid, "/usr/bin/gcc", "gcc -fsyntax-only a.c", reads=["/src/a.c"]).end(pid)
    image = write_database(tmp_path, build.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"])
    found = compile_commands.entries(open_database(image.path))
    assert [(" ".join(each["arguments"]), each.get("output")) for each in found] == [
        ("gcc -c a.c -o b.o", "/src/b.o"),
        ("gcc -c -O2 a.c", "/src/a.o"),
        ("gcc -fsyntax-only a.c", None),
    ]


def test_rows_choose_compilations(image: Image) -> None:
    assert [each["file"] for each in compile_commands.entries(image, [1])] == ["/src/c.c"]


def test_the_file_is_json_of_the_entries(image: Image) -> None:
    stream = io.BytesIO()
    assert compile_commands.write(stream, compile_commands.entries(image)) == 4
    assert json.loads(stream.getvalue()) == compile_commands.entries(image)
    assert stream.getvalue().endswith(b"]\n")


def test_a_database_without_compilations_says_what_to_do(tmp_path: Path) -> None:
    image = write_database(tmp_path, BuildTeller().trace())
    with pytest.raises(EtraceError) as caught:
        compile_commands.entries(image)
    assert caught.value.hint == "run: cas pp"
