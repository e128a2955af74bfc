# SPDX-License-Identifier: Apache-2.0
"""The table `hashes`: those of the capture, and what is still there, compared with the trace."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder

from etrace.nfsdb import hash_records
from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import locate
from etrace.nfsdb.hash_records import Hashed, Inode, State
from etrace.nfsdb.hashes import TABLE
from etrace.nfsdb.store import open_database
from etrace.parse.database import Parsed, parse_database
from etrace.query.hashes import FileHash, Hashes

CC = 2 << 22 | 2
SHA, BLOB = "1" * 64, "2" * 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with files and the trace of a program that used them."""
    folder = tmp_path.resolve()
    for name in ("a.c", "a.o", "bigger", "touched"):
        (folder / name).write_text(name)
    os.mkfifo(folder / "fifo")
    trace = TraceBuilder(cwd=str(folder)).exec(CC, "/bin/cc", ["cc"])
    for name in ("a.c", "bigger", "touched", "fifo", "gone", "\udcff"):
        trace.use(CC, os.fsencode(folder / name))
    trace.use(CC, str(folder / "a.o"), flags=O_WRONLY | O_CREAT).exit(CC)
    (folder / ".nfsdb").write_bytes(trace.trace())
    return folder


def parse(folder: Path, *, with_hashes: bool = True, with_json: bool = False) -> Parsed:
    files = locate(folder)
    return parse_database([files.trace], files, with_hashes=with_hashes, with_json=with_json)


def states(folder: Path) -> dict[str, str]:
    image = open_database(folder)
    hashes = Hashes(image)
    found = {}
    for row in range(image["paths"].n_rows):
        if (known := hashes.of(row)) is not None:
            found[os.path.basename(os.fsdecode(image.path_string(row)))] = known.state  # noqa: PTH119
    return found


def of(folder: Path, name: str) -> FileHash | None:
    image = open_database(folder)
    return Hashes(image).of(image.find_path(os.fsencode(folder / name)))


def write_side(folder: Path, *records: tuple[str, Hashed]) -> None:
    with (folder / ".nfsdb.hashes").open("wb") as stream:
        hash_records.write(stream, [(os.fsencode(folder / name), each) for name, each in records])


def test_what_is_still_there_is_hashed_and_compared(folder: Path) -> None:
    (folder / "bigger").write_text("much bigger now")
    os.utime(folder / "touched")
    later = (folder / "bigger").stat().st_mtime_ns
    assert later >= (folder / ".nfsdb").stat().st_mtime_ns
    os.utime(folder / ".nfsdb", ns=(later - 1, later - 1))
    parse(folder)
    assert states(folder) | {"cc": ""} == {
        "a.c": "same", "a.o": "same", "bigger": "changed", "touched": "changed", "cc": "",
        "fifo": "special", "gone": "gone", "\udcff": "gone",
    }  # fmt: skip
    assert of(folder, "a.c") == FileHash(
        hashlib.sha256(b"a.c").hexdigest(), hashlib.sha1(b"blob 3\0a.c").hexdigest(), 3, "same"
    )
    assert of(folder, "gone") == FileHash("", "", -1, "gone")


def test_hashes_of_the_capture_are_there_without_asking(folder: Path) -> None:
    inode = Inode(1, 2, 77, 4, 5)
    first = Hashed(State.TRACED, inode, "3" * 64, BLOB)
    write_side(
        folder,
        ("a.o", first), ("a.o", Hashed(State.TRACED, inode, SHA, BLOB)),
        ("gone", Hashed(State.GONE)), ("a.c", Hashed(State.UNSTABLE, inode)),
        ("of another build", Hashed(State.GONE)),
    )  # fmt: skip
    parsed = parse(folder, with_hashes=False)
    assert parsed.problems == ()
    assert states(folder) == {"a.c": "unstable", "a.o": "traced", "gone": "gone"}
    assert of(folder, "a.o") == FileHash(SHA, BLOB, 77, "traced")
    assert of(folder, "a.c") == FileHash("", "", -1, "unstable")
    assert of(folder, "bigger") is None


def test_later_hashes_fill_what_the_capture_left_out(folder: Path) -> None:
    write_side(folder, ("a.o", Hashed(State.TRACED, Inode(1, 2, 77, 4, 5), SHA, BLOB)))
    parse(folder, with_hashes=False)
    assert parse(folder).report is None  # the database stays, and gets them
    assert (states(folder)["a.o"], states(folder)["a.c"]) == ("traced", "same")
    before = open_database(folder).inode
    parse(folder)
    assert open_database(folder).inode == before


def test_without_any_there_is_no_table(folder: Path) -> None:
    parse(folder, with_hashes=False)
    image = open_database(folder)
    assert TABLE not in image.tables
    hashes = Hashes(image)
    assert not hashes.are_known
    assert hashes.of(0) is None


@pytest.mark.parametrize("data", [b"", b"etrace hashes 1\n", b"something else\n"])
def test_a_damaged_file_is_a_problem_of_its_own(folder: Path, data: bytes) -> None:
    (folder / ".nfsdb.hashes").write_bytes(data)
    parsed = parse(folder, with_hashes=False)
    (problem,) = parsed.problems
    assert problem.startswith(f"{folder}/.nfsdb.hashes: not a file of hashes: ")
    assert TABLE not in open_database(folder).tables


def test_an_image_that_is_made_again_from_json_has_those_of_the_capture(folder: Path) -> None:
    write_side(folder, ("a.o", Hashed(State.TRACED, Inode(1, 2, 77, 4, 5), SHA, BLOB)))
    parse(folder, with_hashes=False, with_json=True)
    files = locate(folder)
    files.image.unlink()
    build_image(files)
    assert of(folder, "a.o") == FileHash(SHA, BLOB, 77, "traced")
