# SPDX-License-Identifier: Apache-2.0
"""The file access trace of a database: every block, in order; and the way back."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
from pathlib import Path

import pytest
from backends import need_tool
from builders import O_CREAT, O_RDWR, O_TRUNC, O_WRONLY, TraceBuilder
from compiling import write_database
from libetrace.image.file import Image

from etrace.cli.main import cas, etrace
from etrace.errors import EtraceError, UsageError
from etrace.export.file_access_trace import Export
from etrace.imports.access_trace import forms, reader, writer
from etrace.imports.access_trace.model import Layout
from etrace.nfsdb.store import open_database

MAKE, CC, THREAD, MV, LN = (n << 22 | 100 + n for n in range(1, 6))
CREATE = O_WRONLY | O_CREAT | O_TRUNC
BEGIN_NS = 5_000_000_000
WRITTEN_NS = 1_700_000_000_000_000_000


def said() -> TraceBuilder:
    """Return a build with a process of each kind; events are 1000 ns apart."""
    t = TraceBuilder("/src")
    t.exec(MAKE, "/usr/bin/make", ["make"]).open(MAKE, "/src/Makefile", fd=3)
    t.fork(MAKE, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a\nb.c"])
    t.use(CC, "/src/a,b=c.c").thread(CC, THREAD).use(THREAD, "/src/a.h")
    t.use(CC, "/src/t", flags=CREATE).use(CC, "/src/t", flags=CREATE, original="/src/./t")
    t.use(CC, "/src/u", flags=O_RDWR).exit(THREAD).exit(CC)
    t.fork(MAKE, MV).exec(MV, "/usr/bin/mv", ["mv", "t", "a.o"]).rename(MV, "/src/t", "/src/a.o")
    t.exit(MV).fork(MAKE, LN).link(LN, "/src/a.o", "/src/b.o")
    t.symlink(LN, "a.o", "/src/c.o", "/src/a.o").exit(LN, 3)
    return t.close(MAKE, 3).exit(MAKE)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return database(tmp_path)


def database(folder: Path) -> Image:
    write_database(folder, said().trace())
    trace = folder / ".nfsdb"
    trace.write_bytes(said().trace())
    os.utime(trace, ns=(WRITTEN_NS, WRITTEN_NS))
    assert cas(["parse", "--force", "--dbdir", str(folder)]) == 0
    return open_database(folder)


def text_of(image: Image, **options: object) -> list[str]:
    version = int(str(options.pop("version", 1)))
    stream = io.BytesIO()
    writer.write(Export(image).trace(version, **options), stream)  # type: ignore[arg-type]
    return stream.getvalue().decode().splitlines()


def test_every_block_of_a_build(image: Image) -> None:
    lines = text_of(image)
    assert lines[:10] == [
        "1", "9", "5=Process", "42=ProcessExec", "45=ReadFile", "1=CreateFile", "46=WriteFile",
        "41=ProcessExit", "9=DeleteFile", "47=CreateHardlinkSource",
    ]  # fmt: skip
    assert lines[10:16] == [
        "48=CreateHardlinkDest",
        "4",
        "0=None",
        "1=Read",
        "2=Write",
        "3=ReadWrite",
    ]
    processes = lines[17:25]
    assert lines[16] == "4"
    assert [line.split(",")[:3] for line in processes[::2]] == [
        ["101", '"/usr/bin/make"', "0"], ["102", '"/usr/bin/cc"', "101"],
        ["104", '"/usr/bin/mv"', "101"], ["105", '"/usr/bin/make"', "101"],
    ]  # fmt: skip
    assert [line.split(",")[5] for line in processes[::2]] == ["0", "0", "0", "3"]
    assert processes[1::2] == ["make", "cc -c a.b.c", "mv t a.o", "make"]


def test_times_are_ticks_that_end_when_the_trace_was_written(image: Image) -> None:
    processes = Export(image).trace(1).processes
    ends = 621355968000000000 + WRITTEN_NS // 100
    assert processes[0].end == ends
    whole_ns = max(
        image["executions"]["start_ns"][i] + image["executions"]["elapsed_ns"][i]
        for i in range(image["executions"].n_rows)
    )
    assert processes[0].start == 621355968000000000 + (WRITTEN_NS - whole_ns) // 100


def test_operations_are_in_order_and_threads_are_their_process(image: Image) -> None:
    trace = Export(image).trace(2)
    shown = [
        (event.pid, trace.operations[event.operation].decode(), trace.path_of(event).decode())
        for event in trace.events
    ]
    assert shown == [
        (101, "Process", "/usr/bin/make"),
        (101, "ProcessExec", "/usr/bin/make"),
        (101, "ReadFile", "/src/Makefile"),
        (102, "Process", "/usr/bin/make"),
        (102, "ProcessExec", "/usr/bin/cc"),
        (102, "ReadFile", "/src/a,b=c.c"),
        (102, "ReadFile", "/src/a.h"),
        (102, "CreateFile", "/src/t"),
        (102, "WriteFile", "/src/t"),
        (102, "WriteFile", "/src/u"),
        (102, "ProcessExit", "/usr/bin/cc"),
        (104, "Process", "/usr/bin/make"),
        (104, "ProcessExec", "/usr/bin/mv"),
        (104, "DeleteFile", "/src/t"),
        (104, "CreateFile", "/src/a.o"),
        (104, "ProcessExit", "/usr/bin/mv"),
        (105, "Process", "/usr/bin/make"),
        (105, "CreateHardlinkSource", "/src/a.o"),
        (105, "CreateHardlinkDest", "/src/b.o"),
        (105, "CreateFile", "/src/c.o"),
        (105, "ProcessExit", "/usr/bin/make"),
        (101, "ProcessExit", "/usr/bin/make"),
    ]
    related = [each for each in trace.correlations if each.other]
    assert related == [(14, 15, 14), (18, 19, 18)]


def test_the_first_block_has_what_the_build_only_read(image: Image) -> None:
    trace = Export(image).trace(1, is_split=True)
    assert sorted(trace.manifest.values()) == [
        b"/src/Makefile", b"/src/a,b=c.c", b"/src/a.h", b"/usr/bin/cc", b"/usr/bin/make",
        b"/usr/bin/mv",
    ]  # fmt: skip
    assert list(trace.paths) == list(range(1, len(trace.paths) + 1))
    assert all((event.manifest is None) != (event.path is None) for event in trace.events)
    whole = Export(image).trace(1)
    assert [trace.path_of(e) for e in trace.events] == [whole.path_of(e) for e in whole.events]
    again = forms.in_form(trace, 1, Layout.MANIFEST)
    assert [again.path_of(e) for e in again.events] == [whole.path_of(e) for e in whole.events]


def test_a_process_and_its_descendants(image: Image) -> None:
    export = Export(image)
    assert [p.pid for p in export.trace(1, root=export.upid("104")).processes] == [104]
    assert len(export.trace(1, root=export.upid(str(MAKE))).processes) == 4
    with pytest.raises(EtraceError, match="7: is not a process of the database"):
        export.upid("7")


def test_what_the_format_cannot_carry_is_reported(
    image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", "file-access-trace", "--dbdir", str(tmp_path), "-o", str(tmp_path / "x")]
    assert cas(words) == 0
    said = capsys.readouterr().err
    assert "no place for: 1 thread (what they did is their process's), 1 line end" in said
    assert "times of day are counted back" in said


def test_split_paths_are_of_version_1(image: Image, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="version 2 has all paths in one block"):
        forms.check(2, Layout.SPLIT)
    words = ["export", "file-access-trace", "--dbdir", str(tmp_path), "--format-version", "3"]
    assert cas([*words, "--path-blocks", "split"]) == 2
    assert cas(["export", "json", "--dbdir", str(tmp_path), "--root", "1"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--path-blocks", "manifest"],
        ["--format-version", "2"],
        ["--format-version", "3"],
        ["--root", "102"],
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_an_export_that_is_imported_is_exported_again_byte_for_byte(
    options: list[str], image: Image, tmp_path: Path
) -> None:
    first, second, copy = tmp_path / "1", tmp_path / "2", tmp_path / "copy"
    copy.mkdir()
    words = ["export", "file-access-trace", "--dbdir"]
    assert cas([*words, str(tmp_path), *options, "-o", str(first)]) == 0
    assert etrace(["import", "file-access-trace", str(first), "-o", str(copy)]) == 0
    assert cas(["parse", "--dbdir", str(copy)]) == 0
    assert cas([*words, str(copy), "-o", str(second)]) == 0
    assert second.read_bytes() == first.read_bytes()


def test_the_columns_of_an_imported_trace_say_what_it_said(
    image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the file of operations: the export is made of the database alone."""
    first, second, copy = tmp_path / "1", tmp_path / "2", tmp_path / "copy"
    copy.mkdir()
    words = ["export", "file-access-trace", "--format-version", "2", "--dbdir"]
    assert cas([*words, str(tmp_path), "-o", str(first)]) == 0
    assert etrace(["import", "file-access-trace", str(first), "-o", str(copy)]) == 0
    assert cas(["parse", "--dbdir", str(copy)]) == 0
    (copy / ".nfsdb.accesses").unlink()
    assert cas([*words, str(copy), "-o", str(second)]) == 0
    said = capsys.readouterr().err
    assert said.count("times of day are counted back") == 1, "an import has its own"
    # by two names in the first; a program's opens of one file are one in a database
    repeated = {(102, b"WriteFile", b"/src/t")}
    assert facts(second) == facts(first) - repeated


def facts(path: Path) -> set[tuple[int, bytes, bytes]]:
    """Return the operations, each once."""
    trace = reader.read("f", io.BytesIO(path.read_bytes()))
    return {
        (event.pid, trace.operations[event.operation], trace.path_of(event))
        for event in trace.events
    }


def test_the_operations_of_another_import_are_not_taken(image: Image, tmp_path: Path) -> None:
    (tmp_path / ".nfsdb.accesses").write_bytes(
        b"accesses of 0123456789abcdef\n1\n0\n0\n0\n0\n0\n0\n"
    )
    output = tmp_path / "x"
    assert cas(["export", "file-access-trace", "--dbdir", str(tmp_path), "-o", str(output)]) == 0
    assert b"ProcessExec" in output.read_bytes()


def test_the_suffix_of_the_output_says_how_it_is_packed(image: Image, tmp_path: Path) -> None:
    need_tool("zstd", "zstd")
    words = ["export", "file-access-trace", "--dbdir", str(tmp_path), "-o"]
    for name in ("x", "x.gz", "x.zst"):
        assert cas([*words, str(tmp_path / name)]) == 0
    plain = (tmp_path / "x").read_bytes()
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == plain
    packed = subprocess.run(["zstd", "-dc", tmp_path / "x.zst"], capture_output=True, check=True)
    assert packed.stdout == plain
    for name in ("x.gz", "x.zst"):
        copy = tmp_path / f"of {name}"
        copy.mkdir()
        assert etrace(["import", "file-access-trace", str(tmp_path / name), "-o", str(copy)]) == 0


def test_a_malformed_trace_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_bytes(b"1\n1\nProcess\n")
    assert etrace(["import", "file-access-trace", str(tmp_path / "x"), "-o", str(tmp_path)]) == 2
    assert f"{tmp_path}/x:3: expected NUMBER=OPERATION" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
