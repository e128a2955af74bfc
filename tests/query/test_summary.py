# SPDX-License-Identifier: Apache-2.0
"""The summary of a parsed build: counts, what binaries are made of, wrong input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from builders import TraceBuilder
from databases import capture_database
from libetrace.depend.configuration import load

from etrace.cli.main import cas
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.parse import parse_trace
from etrace.postprocess.run import postprocess
from etrace.query import summary
from etrace.query.rows.file_kinds import FileKind

ELF = b"\x7fELF" + bytes(12)
EXECUTABLE = ELF + b"\x02\x00"
RELOCATABLE = ELF + b"\x01\x00"


FIRST, SECOND, THIRD = 1 << 22 | 1, 2 << 22 | 1, 3 << 22 | 1


def opened(path: Path | str, access: int, at: int, closed: int = 0) -> dict[str, Any]:
    return {"p": str(path), "b": at, "e": closed or at + 1, "m": access, "s": 0}


def entry(
    pid: int, index: int, binary: str, opens: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    base = {"p": pid, "x": index, "s": 0, "e": 10, "b": binary, "w": "/", "v": [binary], "c": []}
    return base | {"r": {"p": -1, "x": 0}, "i": [], "u": [], "o": opens} | more


def page_at(where: Path) -> summary.Summary:
    return summary.summarise(open_database(where))


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """cc makes a.o of a.c and a.h, ld makes prog of it; a later build step reads prog."""
    (tmp_path / "prog").write_bytes(EXECUTABLE)
    (tmp_path / "a.o").write_bytes(RELOCATABLE)
    entries = [
        entry(1, 0, "", [], c=[{"p": 2, "f": 0}]),
        entry(1, 1, "/usr/bin/make", [], c=[{"p": 2, "f": 0}], e=100),
        entry(
            2,
            1,
            "/usr/bin/cc",
            [
                opened(tmp_path / "a.c", 0, 1),
                opened(tmp_path / "a.h", 0, 2),
                opened(tmp_path / "a.o", 1, 3),
            ],
            e=40,
        ),
        entry(
            3, 1, "/usr/bin/ld", [opened(tmp_path / "a.o", 0, 10), opened(tmp_path / "prog", 2, 11)]
        ),
        entry(4, 1, "/usr/bin/strip", [opened(tmp_path / "gone", 1, 20)], **{"!": 1}),
        entry(5, 1, "/usr/bin/touch", [opened(tmp_path / "a.o", 1, 50), opened("/late", 0, 49)]),
    ]
    path = tmp_path / ".nfsdb.json"
    path.write_text(json.dumps(entries))
    return path


def test_counts(build: Path) -> None:
    found = page_at(build).totals
    assert (found.processes, found.commands, found.failed) == (5, 5, 1)
    assert (found.files, found.read, found.written) == (6, 5, 3)


def test_commands_that_start_others_are_not_called_slow(build: Path) -> None:
    page = page_at(build)
    assert page.slowest[0].binary == "/usr/bin/cc"
    assert all(e.binary != "/usr/bin/make" for e in page.slowest)
    assert page.programs[0] == summary.Program("cc", 1, 40)


def test_cpu_time_is_of_the_command_itself(tmp_path: Path) -> None:
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/usr/bin/make", ["make"])
    trace.fork(FIRST, SECOND).exec(SECOND, "/usr/bin/m4", ["m4", "a"]).fork(SECOND, THIRD)
    trace.exec(THIRD, "/usr/bin/m4", ["m4", "b"]).usage(THIRD, 20, 2).exit(THIRD)
    trace.usage(SECOND, 500, 50).exit(SECOND).usage(FIRST, 1, 1).exit(FIRST)
    (tmp_path / ".nfsdb").write_bytes(trace.trace())
    parse_trace([str(tmp_path / ".nfsdb")], str(tmp_path / ".nfsdb.json"))
    page = page_at(tmp_path)
    shown = [(" ".join(each.argv), each.cpu_ns) for each in page.slowest]
    assert shown == [("m4 a", 550), ("m4 b", 22), ("make", 2)]
    assert [(each.name, each.count, each.cpu_ns) for each in page.programs] == [("m4", 1, 22)]


def test_a_binary_is_made_of_what_its_writers_read_before(build: Path, tmp_path: Path) -> None:
    (product,) = page_at(build).products
    assert product == summary.Product(
        path=str(tmp_path / "prog"),
        n_bytes=len(EXECUTABLE),
        kind="executable",
        # what touch read after the link is not an input
        files={FileKind.SOURCE: 1, FileKind.HEADER: 1, FileKind.OBJECT: 1},
        commands=2,
        tools=("cc", "ld"),
    )


@pytest.mark.parametrize("kind", ["thread", "fork"])
def test_what_a_thread_or_child_wrote_is_its_commands(tmp_path: Path, kind: str) -> None:
    (tmp_path / "liba.rlib").write_bytes(b"!<arch>\n")
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/usr/bin/make", ["make"]).fork(FIRST, SECOND)
    trace.exec(SECOND, "/usr/bin/rustc", ["rustc", "a.rs"]).use(SECOND, "/src/a.rs")
    trace.thread(SECOND, THIRD) if kind == "thread" else trace.fork(SECOND, THIRD)
    trace.use(THIRD, str(tmp_path / "liba.rlib"), flags=0o1101)
    trace.exit(THIRD).exit(SECOND).exit(FIRST)
    (tmp_path / ".nfsdb").write_bytes(trace.trace())
    parse_trace([str(tmp_path / ".nfsdb")], str(tmp_path / ".nfsdb.json"))
    (product,) = page_at(tmp_path).products
    assert (product.commands, product.tools) == (1, ("rustc",))


def test_a_summary_counts_what_deps_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.c").write_text('#include "a.h"\nint main(void) { return A; }\n')
    (tmp_path / "a.h").write_text("#define A 0\n")
    (tmp_path / "Makefile").write_text("a: a.o\na.o: a.c a.h\n")
    image = capture_database(tmp_path, ["make", "-C", tmp_path], tmp_path)
    postprocess(image, load(tmp_path), ("linked", "compilations"))
    products = page_at(tmp_path).products
    counts = {str(Path(p.path).name): p.files for p in products}
    for kind in FileKind:
        words = ["deps", "a", "--dbdir", str(tmp_path), "--kind", kind, "-l"]
        n_files = counts["a"].get(kind, 0)
        assert cas(words) == (0 if n_files else 1)
        assert int(capsys.readouterr().out) == n_files
    assert (counts["a"][FileKind.SOURCE], counts["a"][FileKind.OBJECT]) == (1, 6)


def test_only_the_largest_binaries_are_looked_into(tmp_path: Path) -> None:
    made = [tmp_path / f"prog{number}" for number in range(10)]
    for number, path in enumerate(made):
        path.write_bytes(EXECUTABLE + bytes(number))
    page = page_of(tmp_path, [entry(1, 1, "/usr/bin/ld", [opened(p, 1, 1) for p in made])])
    assert [Path(p.path).name for p in page.products] == [f"prog{n}" for n in range(9, 1, -1)]
    assert page.n_products == 10


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(EtraceError) as error:
        page_at(tmp_path / "none.json")
    assert "etrace run" in error.value.hint


@pytest.mark.parametrize("text", ["", "[", "{}x", '[{"p": 1}]', "[1]"])
def test_a_foreign_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with pytest.raises(EtraceError, match=r"foreign\.json"):
        page_at(path)


def page_of(tmp_path: Path, entries: list[dict[str, Any]]) -> summary.Summary:
    path = tmp_path / ".nfsdb.json"
    path.write_text(json.dumps(entries))
    return page_at(path)


def test_a_part_of_a_compiler_is_shown_with_the_command_that_people_know(tmp_path: Path) -> None:
    driver = entry(1, 1, "/usr/bin/gcc", [], v=["gcc", "-c", "a.c"], c=[{"p": 2, "f": 0}])
    part = entry(2, 1, "/usr/lib/gcc/12/cc1", [], v=["cc1", "-quiet"], r={"p": 1, "x": 1})
    page = page_of(tmp_path, [driver, part])
    assert [(e.binary, e.argv) for e in page.slowest] == [
        ("/usr/lib/gcc/12/cc1", ("gcc", "-c", "a.c"))
    ]


def test_a_linker_is_shown_with_the_command_that_people_know(tmp_path: Path) -> None:
    driver = entry(1, 1, "/usr/bin/gcc", [], v=["gcc", "-o", "x"], c=[{"p": 2, "f": 0}])
    middle = entry(2, 1, "/usr/lib/gcc/12/collect2", [], c=[{"p": 3, "f": 0}], r={"p": 1, "x": 1})
    linker = entry(3, 1, "/usr/bin/ld", [], v=["ld", "-o", "x"], r={"p": 2, "x": 1})
    page = page_of(tmp_path, [driver, middle, linker])
    assert [(e.binary, e.argv) for e in page.slowest] == [("/usr/bin/ld", ("gcc", "-o", "x"))]
    alone = entry(3, 1, "/usr/bin/ld", [], v=["ld", "-o", "x"])
    assert [each.argv for each in page_of(tmp_path, [alone]).slowest] == [("ld", "-o", "x")]


def test_a_fifo_that_the_build_left_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    entries = [entry(1, 1, "/usr/bin/tool", [opened(tmp_path / "fifo", 1, 1)])]
    assert page_of(tmp_path, entries).products == ()


def test_a_link_to_a_binary_is_no_second_binary(tmp_path: Path) -> None:
    (tmp_path / "libf.so.1").write_bytes(EXECUTABLE)
    for name in ("libf.so", "far.so"):
        (tmp_path / name).symlink_to("libf.so.1" if name == "libf.so" else "/bin/sh")
    names = ("libf.so.1", "libf.so", "far.so")
    links = [opened(tmp_path / name, 1, at) for at, name in enumerate(names, 1)]
    page = page_of(tmp_path, [entry(1, 1, "/usr/bin/ld", links)])
    assert [Path(p.path).name for p in page.products] == ["far.so", "libf.so.1"]


def test_what_never_became_a_program_is_no_program_that_failed(tmp_path: Path) -> None:
    shell = entry(1, 1, "/bin/sh", [], c=[{"p": 2, "f": 0}], **{"!": 127})
    child = entry(2, 0, "", [], r={"p": 1, "x": 1}, **{"!": 127})
    page = page_of(tmp_path, [shell, child])
    assert (page.totals.commands, page.totals.failed) == (1, 1)


def test_a_thread_is_no_process(tmp_path: Path) -> None:
    children = [{"p": 2, "f": 0x10F00}, {"p": 3, "f": 0}]
    rustc = entry(1, 1, "/usr/bin/rustc", [], c=children)
    page = page_of(tmp_path, [rustc, entry(2, 0, "", []), entry(3, 0, "", [])])
    assert (page.totals.processes, page.totals.commands) == (2, 1)
