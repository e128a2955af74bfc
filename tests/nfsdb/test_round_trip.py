# SPDX-License-Identifier: Apache-2.0
"""A database goes into an image and comes out as it was."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest
from libetrace.image import ALIGNMENT, HEAD, Image, ImageError, open_image, write_image
from libetrace.parser import parse_bytes

from etrace.errors import EtraceError
from etrace.nfsdb.from_json import Builder, read_entries
from etrace.nfsdb.to_json import lines
from etrace.spec.database import NONE, TABLES

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def make_image(path: Path, entries: Any) -> Image:
    source = path.with_suffix(".json")
    source.write_bytes(json.dumps(entries).encode())
    write_image(path, {}, Builder(read_entries(source)).build())
    return open_image(path)


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Image]:
    folder = tmp_path_factory.mktemp("lua")
    text, env, _, _ = parse_bytes(
        lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()), stat=False
    )
    source = folder / "lua.json"
    source.write_bytes(text)
    builder = Builder(read_entries(source))
    builder.add_environment(json.loads(env))
    write_image(folder / "lua.img", {"root": "/tmp"}, builder.build())
    return text, open_image(folder / "lua.img")


def test_a_real_build_comes_out_byte_for_byte(lua: tuple[bytes, Image]) -> None:
    text, image = lua
    assert b"".join(lines(image)) == text


def test_strings_and_paths_are_found_by_their_bytes(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    for row in range(0, image.n_strings, 7):
        assert image.find_string(image.string(row)) == row
    for path in range(0, image["paths"].n_rows, 5):
        assert image.find_path(image.path_string(path)) == path
    assert image.find_string(b"/no such string") == NONE
    assert image.find_path(b"-o") == NONE  # a string, and no path


def test_every_open_is_listed_under_its_path(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    paths, by_path = image["paths"], image["path_opens"]["open"]
    seen = set()
    for path in range(paths.n_rows):
        for i in paths.span("opens.start", path):
            assert image["opens"]["path"][by_path[i]] == path
            seen.add(by_path[i])
    assert seen == set(range(image["opens"].n_rows))


def test_the_environment_is_in_order_of_processes(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    table = image["environment"]
    assert table.n_rows > 100
    assert list(table["upid"]) == sorted(table["upid"])
    assert b"=" in image.string(table["string"][0])


def test_the_ancestors_database_can_be_read(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_bytes(lzma.decompress((GOLDEN / "lua.ancestor.json.xz").read_bytes()))
    entries = read_entries(source)
    write_image(tmp_path / "a.img", {}, Builder(entries).build())
    image = open_image(tmp_path / "a.img")
    assert image["executions"].n_rows == len(entries)
    again = json.loads(b"".join(lines(image)))
    assert [(e["p"], e["x"], e["v"]) for e in again] == [(e["p"], e["x"], e["v"]) for e in entries]


def test_bytes_that_are_not_utf8_come_back(tmp_path: Path) -> None:
    name = os.fsdecode(b'/tmp/za\xc5\xbc\xf3\xff\n"x')
    entry = {"p": 4194305, "x": 1, "v": [name], "b": name, "o": [{"p": name, "m": 1, "s": 3}]}
    image = make_image(tmp_path / "x.img", [entry])
    assert image.find_path(os.fsencode(name)) == 0
    again = json.loads(b"".join(lines(image)))
    assert again[0]["v"] == [name]
    assert again[0]["o"][0]["p"] == name


def test_an_empty_database_is_a_database(tmp_path: Path) -> None:
    image = make_image(tmp_path / "x.img", [])
    assert {name: table.n_rows for name, table in image.tables.items()} == {
        table.name: 0 for table in TABLES
    }
    assert json.loads(b"".join(lines(image))) == []


def test_columns_lie_at_multiples_of_64_bytes(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    for table in image.tables.values():
        for info in table.infos.values():
            assert info.offset % ALIGNMENT == 0


@pytest.mark.parametrize("n_bytes", [0, 7, HEAD.size, HEAD.size + 5, 300, -1])
def test_a_cut_image_is_refused_by_name(
    lua: tuple[bytes, Image], tmp_path: Path, n_bytes: int
) -> None:
    _, image = lua
    cut = tmp_path / "cut.img"
    cut.write_bytes(image.path.read_bytes()[:n_bytes])
    with pytest.raises(ImageError, match=r"cut\.img"):
        open_image(cut)


def test_an_image_of_a_newer_schema_is_refused(lua: tuple[bytes, Image], tmp_path: Path) -> None:
    _, image = lua
    data = bytearray(image.path.read_bytes())
    data[8] += 1
    newer = tmp_path / "newer.img"
    newer.write_bytes(data)
    with pytest.raises(ImageError, match="schema 2") as caught:
        open_image(newer)
    assert "newer etrace" in caught.value.hint


def test_an_image_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    image = make_image(tmp_path / "x.img", [])
    before = image.path.read_bytes()
    with pytest.raises(AttributeError):
        write_image(image.path, {}, [None])  # type: ignore[list-item]
    assert image.path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.img", "x.json"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[", "Expecting"),
        (b"{}", "not an array"),
        (b"[1]", "entry 0 is not an object"),
        (b'[{"p":1}]', "no number 'x'"),
    ],
)
def test_bad_json_is_told(tmp_path: Path, text: bytes, words: str) -> None:
    source = tmp_path / "bad.json"
    source.write_bytes(text)
    with pytest.raises(EtraceError, match=words):
        read_entries(source)
