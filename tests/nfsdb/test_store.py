# SPDX-License-Identifier: Apache-2.0
"""The database of a directory: found, made when stale, never a wrong one."""

from __future__ import annotations

import errno
import json
import os
import shutil
from array import array
from pathlib import Path
from typing import Any

import pytest
from backends import need_root
from libetrace.image.file import Image, NewColumn, NewTable

from etrace.errors import EtraceError
from etrace.nfsdb.files import locate
from etrace.nfsdb.products import StringTable, rewrite
from etrace.nfsdb.store import open_database, refresh
from etrace.nfsdb.to_json import write_back


def entry(upid: int, *argv: str) -> dict[str, Any]:
    return {"p": upid, "x": 1, "v": list(argv), "b": argv[0], "w": "/src"}


def write(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / ".nfsdb.json").write_text(json.dumps(entries))
    return folder


def argv(image: Image) -> list[bytes]:
    return [image.string(row) for row in image["arguments"]["string"]]


def marked(image: Image) -> bool:
    """Whether this image is the one that mark() has written, not made again."""
    return "mark" in image.attributes


def mark(folder: Path) -> None:
    rewrite(open_database(folder), [], {"mark": True})
    assert marked(open_database(folder))


def test_the_image_is_made_of_the_json(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc", "a.c"))
    image = open_database(tmp_path)
    assert image.path == tmp_path / ".nfsdb.img"
    assert argv(image) == [b"/bin/cc", b"a.c"]
    assert image.attributes["source_root"] == "/src"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_image_may_be_read_by_whom_the_json_may_be(tmp_path: Path, mode: int) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    (tmp_path / ".nfsdb.json").chmod(mode)
    mark(tmp_path)
    assert (tmp_path / ".nfsdb.img").stat().st_mode & 0o777 == mode


def test_the_image_may_be_read_by_whom_the_environments_may_be(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    (tmp_path / ".nfsdb.json").chmod(0o644)
    environments = tmp_path / ".nfsdb.env.json"
    environments.write_text("{}")
    environments.chmod(0o600)
    mark(tmp_path)
    assert (tmp_path / ".nfsdb.img").stat().st_mode & 0o777 == 0o600


@pytest.mark.root
def test_what_root_makes_belongs_to_the_owner_of_the_json(tmp_path: Path) -> None:
    need_root()
    write(tmp_path, entry(1, "/bin/cc"))
    json_file, image = tmp_path / ".nfsdb.json", tmp_path / ".nfsdb.img"
    os.chown(json_file, 65534, 65534)
    mark(tmp_path)
    write_back(image)
    assert {path.stat().st_uid for path in (json_file, image)} == {65534}


@pytest.mark.root
def test_an_image_that_holds_environments_of_root_is_roots(tmp_path: Path) -> None:
    """A user may have linked them to the name beside their own JSON."""
    need_root()
    write(tmp_path, entry(1, "/bin/cc"))
    os.chown(tmp_path / ".nfsdb.json", 65534, 65534)
    (tmp_path / "secret").write_text("{}")
    (tmp_path / ".nfsdb.env.json").symlink_to("secret")
    mark(tmp_path)
    assert (tmp_path / ".nfsdb.img").stat().st_uid == 0


@pytest.mark.parametrize("name", [".", ".nfsdb.json", ".nfsdb.img"])
def test_a_database_is_named_by_directory_json_or_image(tmp_path: Path, name: str) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    open_database(tmp_path)
    assert argv(open_database(tmp_path / name)) == [b"/bin/cc"]


def test_without_a_name_it_is_in_db_dir_else_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, entry(1, name))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("DB_DIR", raising=False)
    assert argv(open_database()) == [b"here"]
    monkeypatch.setenv("DB_DIR", str(tmp_path / "there"))
    assert argv(open_database()) == [b"there"]


def test_an_image_is_used_as_long_as_its_json_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    mark(tmp_path)
    assert marked(open_database(tmp_path))
    write(tmp_path, entry(1, "/bin/ld"))
    image = open_database(tmp_path)
    assert (argv(image), marked(image)) == ([b"/bin/ld"], False)


def test_a_change_that_keeps_size_and_time_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    mark(tmp_path)
    old = (tmp_path / ".nfsdb.json").stat()
    (tmp_path / ".nfsdb.json").rename(tmp_path / "old")
    write(tmp_path, entry(1, "/bin/ld"))
    os.utime(tmp_path / ".nfsdb.json", ns=(old.st_atime_ns, old.st_mtime_ns))
    assert argv(open_database(tmp_path)) == [b"/bin/ld"]


def test_a_copied_database_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write(tmp_path / "a", entry(1, "/bin/cc"))
    mark(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copy)
    image = open_database(tmp_path / "b")
    assert marked(image)
    assert (
        image.attributes["sources"]["json"]["inode"] == (tmp_path / "b/.nfsdb.json").stat().st_ino
    )
    assert open_database(tmp_path / "b").inode == image.inode


def test_a_copied_trace_is_the_same_trace(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.nfsdb").write_text("INITCWD=/build\n")
    write(tmp_path / "a", entry(1, "/bin/cc"))
    mark(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copy)
    os.utime(tmp_path / "b/.nfsdb", ns=(2**62, 2**62))
    image = open_database(tmp_path / "b")
    assert marked(image)
    assert list(image.attributes["traces"]) == [str(tmp_path / "b/.nfsdb")]
    (tmp_path / "b/.nfsdb").write_text("INITCWD=/other\n")
    with pytest.raises(EtraceError, match="has changed since"):
        open_database(tmp_path / "b")


@pytest.mark.parametrize("name", [".nfsdb.env.json", ".nfsdb.mounts.json"])
def test_a_side_file_that_comes_or_goes_makes_the_image_stale(tmp_path: Path, name: str) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    mark(tmp_path)
    (tmp_path / name).write_text("{}" if "env" in name else "[]")
    assert not marked(open_database(tmp_path))
    mark(tmp_path)
    (tmp_path / name).unlink()
    assert not marked(open_database(tmp_path))


def test_an_image_alone_is_a_database(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    open_database(tmp_path)
    (tmp_path / ".nfsdb.json").unlink()
    assert argv(open_database(tmp_path)) == [b"/bin/cc"]


@pytest.mark.parametrize("has_json", [True, False])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"somebody else's image, 24 bytes", "not a database image"),
        (b"ETRACEDB" + b"\0" * 40, "schema 0 is older"),
        (b"ETRACEDB" + b"\xff" * 40, "schema 4294967295, and this etrace"),
        (b"ETRACEDB\1\0\0\0", "not a database image"),
    ],
)
def test_what_is_no_image_is_an_error_and_stays(
    tmp_path: Path, content: bytes, words: str, has_json: bool
) -> None:
    if has_json:
        write(tmp_path, entry(1, "/bin/cc"))
    (tmp_path / ".nfsdb.img").write_bytes(content)
    with pytest.raises(EtraceError, match=words) as caught:
        open_database(tmp_path)
    assert "cas cache" in caught.value.hint
    assert (tmp_path / ".nfsdb.img").read_bytes() == content


def test_a_trace_that_changed_makes_the_database_old(tmp_path: Path) -> None:
    trace = tmp_path / ".nfsdb"
    trace.write_text("INITCWD=/build\n")
    write(tmp_path, entry(1, "/bin/cc"))
    image = open_database(tmp_path)
    assert image.attributes["source_root"] == "/build"
    os.utime(trace, ns=(2**62, 2**62))  # touched, and the same
    open_database(tmp_path)
    trace.write_text("INITCWD=/other\n")
    with pytest.raises(EtraceError, match="has changed since") as caught:
        open_database(tmp_path)
    assert "cas parse" in caught.value.hint
    assert argv(open_database(tmp_path / ".nfsdb.json")) == [b"/bin/cc"]


def test_a_trace_that_is_newer_than_the_first_image_makes_it_old(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    (tmp_path / ".nfsdb").write_text("INITCWD=/build\n")
    os.utime(tmp_path / ".nfsdb.json", ns=(0, 0))
    with pytest.raises(EtraceError, match="has changed since"):
        open_database(tmp_path)


def test_products_of_an_older_image_are_not_written_into_a_newer_one(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    old = open_database(tmp_path)
    write(tmp_path, entry(1, "/bin/ld"), entry(2, "/bin/cc"))
    open_database(tmp_path)
    with pytest.raises(EtraceError, match="changed meanwhile"):
        rewrite(old, [], {"mark": True})
    assert argv(open_database(tmp_path)) == [b"/bin/ld", b"/bin/cc"]


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EROFS])
def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    def refuse(*_: Any, **_options: Any) -> None:
        raise OSError(reason, os.strerror(reason))

    write(tmp_path, entry(1, "/bin/cc"))
    monkeypatch.setattr("etrace.nfsdb.build.write_image", refuse)
    with pytest.raises(EtraceError, match="cannot be made here") as caught:
        open_database(tmp_path)
    assert "copy the database" in caught.value.hint


def test_what_was_said_of_a_database_stays_when_it_is_made_again(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    refresh(locate(tmp_path), {"version": "v1", "source_root": "/said"})
    write(tmp_path, entry(1, "/bin/ld"))
    image = open_database(tmp_path)
    assert argv(image) == [b"/bin/ld"]
    assert (image.attributes["version"], image.attributes["source_root"]) == ("v1", "/said")


@pytest.mark.parametrize(
    ("name", "words"),
    [(".", "no database"), ("none", "no such directory"), ("file", "not a directory and not")],
)
def test_no_database_is_an_error_with_a_hint(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EtraceError, match=words) as caught:
        open_database(tmp_path / name)
    assert caught.value.hint


def test_bad_json_leaves_the_old_image(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    open_database(tmp_path)
    before = (tmp_path / ".nfsdb.img").read_bytes()
    (tmp_path / ".nfsdb.json").write_text("{")
    with pytest.raises(EtraceError, match=r"nfsdb\.json"):
        open_database(tmp_path)
    assert (tmp_path / ".nfsdb.img").read_bytes() == before


def test_tables_are_added_and_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc", "a.c"))
    image = open_database(tmp_path)
    strings = StringTable(image)
    numbers = [strings.number(text) for text in (b"a.c", b"new", b"/bin/cc", b"new")]
    assert [n - image.n_strings for n in numbers if n >= image.n_strings] == [0, 0]
    patterns = NewColumn("string", "<u4", array("I", numbers))
    rewrite(image, [strings.table(), NewTable("patterns", 4, [patterns])], {"more": 1})
    again = open_database(tmp_path)
    shown = [again.string(row) for row in again["patterns"]["string"]]
    assert shown == [b"a.c", b"new", b"/bin/cc", b"new"]
    assert argv(again) == [b"/bin/cc", b"a.c"]
    assert again.attributes == {**image.attributes, "more": 1}


def test_added_strings_go_on_where_they_ended(tmp_path: Path) -> None:
    write(tmp_path, entry(1, "/bin/cc"))
    image = open_database(tmp_path)
    strings = StringTable(image)
    first = strings.number(b"one")
    rewrite(image, [strings.table()], {})
    again = StringTable(open_database(tmp_path))
    assert (again.number(b"one"), again.number(b"two")) == (first, first + 1)
    assert again.number(b"/bin/cc") == image.find_string(b"/bin/cc")
