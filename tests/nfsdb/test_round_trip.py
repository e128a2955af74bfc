# SPDX-License-Identifier: Apache-2.0
"""A database goes into an image and comes out unchanged."""

from __future__ import annotations

import json
import lzma
import os
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from databases import GOLDEN, parse_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.image.columns import COLUMNS
from libetrace.image.file import Image, open_image, write_image
from libetrace.image.header import ALIGNMENT, HEAD, SCHEMA, ImageError

from etrace.errors import EtraceError
from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.to_json import pieces
from etrace.spec.database import NONE

#: what every image has
TABLES = {name: table for name, table in SCHEMA.items() if not table.is_product}


def image_of(folder: Path, text: bytes | str, env: bytes = b"{}", mounts: bytes = b"[]") -> Image:
    files = name_files(folder / "x")
    files.json.write_bytes(text if isinstance(text, bytes) else text.encode())
    files.env.write_bytes(env)
    files.mounts.write_bytes(mounts)
    build_image(files)
    return open_image(files.image)


def exported(image: Image) -> Any:
    return json.loads(b"".join(pieces(image)))


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Image]:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    text, env, mounts = parse_bytes(trace)
    return text, image_of(tmp_path_factory.mktemp("lua"), text, env, mounts)


def test_a_real_build_comes_out_byte_for_byte(lua: tuple[bytes, Image]) -> None:
    text, image = lua
    assert b"".join(pieces(image)) == text


def test_an_image_has_the_columns_of_the_schema(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    found = [(t.name, c, i.dtype) for t in image.tables.values() for c, i in t.infos.items()]
    assert found == [(t, c, schema.dtype) for t, c, schema in COLUMNS if t in image.tables]
    assert list(image.tables) == [*TABLES, "open_uses", "fork_times"]


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
    seen = []
    for path in range(paths.n_rows):
        rows = [by_path[i] for i in paths.span("opens.start", path)]
        assert rows == sorted(rows)
        assert {image["opens"]["path"][row] for row in rows} <= {path}
        seen += rows
    assert sorted(seen) == list(range(image["opens"].n_rows))


def test_every_open_knows_its_execution(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    executions, opener = image["executions"], image["opens"]["execution"]
    for row in range(executions.n_rows):
        assert {opener[i] for i in executions.span("opens.start", row)} <= {row}


def test_children_are_found_by_their_row(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    executions, children = image["executions"], image["children"]
    for row in range(executions.n_rows):
        for i in executions.span("children.start", row):
            child = children["execution"][i]
            assert (executions["upid"][child], executions["index"][child]) == (
                children["upid"][i],
                0,
            )
            assert executions["parent"][child] == row


def test_the_environment_is_in_order_of_processes(lua: tuple[bytes, Image]) -> None:
    _, image = lua
    table = image["environment"]
    pairs = [
        (upid, image.string(text))
        for upid, text in zip(table["upid"], table["string"], strict=True)
    ]
    assert len(pairs) > 100
    assert pairs == sorted(pairs)
    assert all(b"=" in text for _, text in pairs)


def test_mounts_are_kept(tmp_path: Path) -> None:
    mounts = [
        {"p": 4, "x": 0, "t": 9, "k": "mount", "source": "/a", "target": "/b", "flags": 1 << 63,
         "ok": True},
        {"p": 5, "x": 0, "t": 8, "k": "umount", "target": "/b", "flags": 0, "ok": False},
    ]  # fmt: skip
    image = image_of(tmp_path, '[{"p":4,"x":0}]', mounts=json.dumps(mounts).encode())
    table = image["mounts"]
    assert list(table["execution"]) == [0, NONE]
    assert list(table["kind"]) == [0, 1]
    assert list(table["flags"]) == [1 << 63, 0]
    assert list(table["ok"]) == [1, 0]
    shown = [None if s == NONE else image.string(s) for s in table["source"]]
    assert shown == [b"/a", None]


def test_the_ancestors_database_can_be_read(tmp_path: Path) -> None:
    text = lzma.decompress((GOLDEN / "lua.ancestor.json.xz").read_bytes())
    again = {(e["p"], e["x"]): e for e in exported(image_of(tmp_path, text))}
    entries = json.loads(text)
    assert len(again) == len(entries)
    for entry in entries:
        found = again[entry["p"], entry["x"]]
        assert {key: found.get(key) for key in entry} == entry


def test_bytes_that_are_not_utf8_come_back(tmp_path: Path) -> None:
    name = os.fsdecode(b'/tmp/za\xc5\xbc\xf3\xff\n"x')
    entry = {"p": 4194305, "x": 1, "v": [name], "b": name, "o": [{"p": name, "m": 1, "s": 3}]}
    image = image_of(tmp_path, json.dumps([entry]))
    assert image.find_path(os.fsencode(name)) == 0
    again = exported(image)
    assert again[0]["v"] == [name]
    assert again[0]["o"][0]["p"] == name


def test_raw_bytes_and_raw_control_characters_are_taken_as_they_are(tmp_path: Path) -> None:
    image = image_of(tmp_path, b'[{"p":1,"x":0,"w":"/a\xff\nb"}]')
    assert image.string(image["executions"]["cwd"][0]) == b"/a\xff\nb"


def test_an_empty_database_is_a_database(tmp_path: Path) -> None:
    image = image_of(tmp_path, "[]")
    assert {name: table.n_rows for name, table in image.tables.items()} == dict.fromkeys(TABLES, 0)
    assert exported(image) == []


def test_entries_that_were_split_are_one_execution(tmp_path: Path) -> None:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    whole, _, _ = parse_bytes(trace)
    split, _, _ = parse_bytes(trace, split=500)
    assert len(json.loads(split)) > len(json.loads(whole))
    assert b"".join(pieces(image_of(tmp_path, split))) == whole


def test_a_negative_time_that_the_ancestor_wrote_is_negative(tmp_path: Path) -> None:
    image = image_of(tmp_path, '[{"p":1,"x":0,"s":18446744073709551615}]')
    assert image["executions"]["start_ns"][0] == -1


# ---- any database ----

TEXTS = st.text(st.characters(max_codepoint=0x2FF, exclude_categories=["Cs"]), max_size=6) | (
    st.binary(max_size=6).map(os.fsdecode)
)
NUMBERS = st.integers(0, 2**63 - 1)
KEYS = st.tuples(st.integers(0, 5), st.integers(0, 3))
OPENS = st.fixed_dictionaries(
    {"p": TEXTS, "b": NUMBERS, "e": NUMBERS, "m": st.integers(0, 255), "s": st.integers(0, 99)},
    optional={"o": TEXTS, "l": NUMBERS},
)
INHERITED = st.fixed_dictionaries({"d": st.integers(0, 2), "p": TEXTS, "m": st.integers(0, 2)})
DEFINITIONS = st.lists(st.fixed_dictionaries({"n": TEXTS, "v": TEXTS}), max_size=2)
COMPILATIONS = st.fixed_dictionaries(
    {
        "f": st.lists(TEXTS, max_size=2),
        "i": st.lists(TEXTS, max_size=2),
        "d": DEFINITIONS,
        "u": DEFINITIONS,
        "h": st.lists(TEXTS, max_size=2),
        "s": st.integers(0, 3),
        "o": st.lists(TEXTS, max_size=2),
        "p": st.integers(0, 1),
    }
)


def as_written(opened: dict[str, Any], *, shows_uses: bool) -> dict[str, Any]:
    """An opened file with the keys that a parser writes, in its order."""
    left_out = set()
    if opened.get("o") == opened["p"]:
        left_out.add("o")
    if not shows_uses or opened.get("l", 0) <= max(opened["b"], opened["e"]):
        left_out.add("l")
    return {k: opened[k] for k in "pobelms" if k in opened and k not in left_out}


@st.composite
def databases(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Databases as `cas pp` leaves them: every reference is to an execution that is there."""
    keys = sorted(draw(st.sets(KEYS, max_size=6)))
    reference = st.sampled_from(keys or [(0, 0)]).map(lambda key: {"p": key[0], "x": key[1]})
    n_bits, shows_uses = draw(st.integers(0, 4)), draw(st.booleans())
    entries = []
    for upid, index in keys:
        entry = {
            "p": upid, "x": index, "s": draw(NUMBERS), "e": draw(NUMBERS), "b": draw(TEXTS),
            "w": draw(TEXTS), "v": draw(st.lists(TEXTS, max_size=2)),
            "c": draw(st.lists(st.fixed_dictionaries({"p": NUMBERS, "f": NUMBERS}), max_size=2)),
            "r": draw(reference | st.just({"p": -1, "x": 0})),
            "i": draw(st.lists(reference, max_size=2)),
            "u": draw(st.lists(st.fixed_dictionaries({"c": st.integers(0, 9), "t": NUMBERS}),
                               max_size=2)),
        }  # fmt: skip
        if shows_uses:
            entry["h"] = draw(st.lists(INHERITED, min_size=1, max_size=2))
        if draw(st.booleans()):
            entry["!"] = draw(st.integers(0, 255))
        opens: list[dict[str, Any]] = draw(st.lists(OPENS, max_size=3))
        entry["o"] = [as_written(opened, shows_uses=shows_uses) for opened in opens]
        if n_bits:
            entry["n"] = b64encode(draw(st.binary(min_size=n_bits, max_size=n_bits))).decode()
        if draw(st.booleans()):
            entry["m"] = draw(st.sampled_from(keys))[0]
        if draw(st.booleans()):
            entry["d"] = draw(COMPILATIONS)
        if draw(st.booleans()):
            entry |= {"l": draw(TEXTS), "t": draw(st.integers(0, 1))}
        entries.append(entry)
    return entries


def seen_wrappers(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A wrapper without an execution 0 or 1 that is not an ancestor is nobody's wrapper."""
    return [{k: v for k, v in e.items() if k != "m"} for e in entries]


@settings(max_examples=60, deadline=None)
@given(entries=databases(), seed=st.integers(0, 99), indent=st.sampled_from([None, 1]))
def test_any_database_comes_out_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, entries: Any, seed: int, indent: int | None
) -> None:
    shuffled = [dict(random.Random(seed).sample(list(e.items()), len(e))) for e in entries]
    random.Random(seed).shuffle(shuffled)
    folder = tmp_path_factory.mktemp("any")
    image = image_of(folder, json.dumps(shuffled, indent=indent))
    assert seen_wrappers(exported(image)) == seen_wrappers(entries)
    text = b"".join(pieces(image))
    assert b"".join(pieces(image_of(folder, text))) == text


def test_products_become_tables_and_keys_again(tmp_path: Path) -> None:
    made = {"n": "gAE=", "m": 1, "d": {"f": ["/a.c"], "i": ["/i"], "d": [{"n": "A", "v": "1"}],
            "u": [{"n": "B", "v": ""}], "h": ["/h.h"], "s": 2, "o": ["/a.o"], "p": 1},
            "l": "/lib.so.1", "t": 1}  # fmt: skip
    entries = [{"p": 1, "x": 1}, {"p": 2, "x": 0, "r": {"p": 1, "x": 1}, **made}]
    image = image_of(tmp_path, json.dumps(entries))
    assert list(image["wrappers"]["execution"]) == [NONE, 0]
    assert bytes(image["pattern_bits"]["bits"]) == b"\0\0\x80\x01"
    assert image["patterns"].n_rows == 16
    assert list(image["linked"]["kind"]) == [2]
    assert image.string(image["compilations"]["language"][0]) == b"c++"
    assert image.find_path(b"/a.o") == image["compilation_objects"]["path"][0]
    first, second = exported(image)
    assert {key: second[key] for key in "nmdlt"} == made
    assert {key: first.get(key) for key in "nmdlt"} == dict.fromkeys("nmdlt") | {"n": "AAA="}


def test_tables_of_products_are_there_only_with_their_keys(tmp_path: Path) -> None:
    image = image_of(tmp_path, '[{"p":1,"x":1,"l":"/a.a","t":0}]')
    assert set(image.tables) - TABLES.keys() == {"linked"}
    assert list(image["linked"]["kind"]) == [0]


# ---- what is not a database ----


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "byte 0: not an array"),
        ("[", "not an object"),
        ("{}", "not an array"),
        ("[1]", "entry 0, byte 1: not an object"),
        ('[{"p":1}]', "entry 0, .*without the number x"),
        ('[{"x":1}]', "entry 0, .*without the number p"),
        ('[{"p":1,"x":0},{"p":"1","x":0}]', 'entry 1, .*in "p": not a number'),
        ('[{"p":1,"x":0}', "neither a comma nor the closing bracket"),
        ('[{"p":1,"x":0}] x', "more text after the end"),
        ('[{"p":1.5,"x":0}]', 'in "p": not a whole number'),
        ('[{"p":1e3,"x":0}]', 'in "p": not a whole number'),
        ('[{"p":-1,"x":0}]', 'in "p": a number out of range'),
        ('[{"p":9223372036854775808,"x":0}]', 'in "p": a number out of range'),
        ('[{"p":99999999999999999999999,"x":0}]', 'in "p": a number out of range'),
        ('[{"p":1,"x":2147483648}]', 'in "x": a number out of range'),
        ('[{"p":1,"x":0,"b":null}]', 'in "b": not a string'),
        ('[{"p":1,"x":0,"b":"a}]', 'in "b": a string without an end'),
        ('[{"p":1,"x":0,"b":"\\x"}]', "an unknown escape"),
        ('[{"p":1,"x":0,"b":"\\u12"}]', "without four hexadecimal digits"),
        ('[{"p":1,"x":0,"b":"\\ud800"}]', "half a surrogate pair"),
        ('[{"p":1,"x":0,"b":"\\udc00"}]', "half a surrogate pair"),
        ('[{"p":1,"x":0,"v":"a"}]', 'in "v": not an array'),
        ('[{"p":1,"x":0,"v":["a" "b"]}]', "neither a comma"),
        ('[{"p":1,"x":0,"o":[{"m":1}]}]', 'in "o".*an opened file without p'),
        ('[{"p":1,"x":0,"o":[{"p":"a","m":256}]}]', 'in "o", "m": a number out of range'),
        ('[{"p":1,"x":0,"c":[{"f":1}]}]', "a child without p"),
        ('[{"p":1,"x":0,"n":"A"}]', "not base64"),
        ('[{"p":1,"x":0,"n":"A==="}]', "not base64"),
        ('[{"p":1,"x":0,"n":"AA==AA=="}]', "not base64"),
        ('[{"p":1,"x":0,"n":"AA=="},{"p":2,"x":0,"n":"AAA="}]', "entry 1.*as many patterns"),
        ('[{"p":1,"x":0,"d":{"d":[{"v":"1"}]}}]', 'in "d", "d": a definition without n'),
        ('[{"p":1,"x":0,"t":2}]', 'in "t": a number out of range'),
        ('[{"p":1,"x":0,"q":' + "[" * 600 + "]" * 600 + "}]", "nested too deeply"),
    ],
)
def test_bad_json_names_file_entry_byte_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(EtraceError, match=rf"x\.json: .*{words}") as caught:
        image_of(tmp_path, text)
    assert "cas parse" in caught.value.hint
    assert not (tmp_path / "x.img").exists()


@pytest.mark.parametrize(
    ("env", "mounts", "words"),
    [
        (b"[]", b"[]", r"env\.json: byte 0: not an object"),
        (b'{"A=b":[1,"c"]}', b"[]", r"env\.json: entry 0, byte 10: not a number"),
        (b"{}", b"{}", r"mounts\.json: byte 0: not an array"),
        (b"{}", b'[{"p":1}]', r"mounts\.json: entry 0.*a mount without k"),
        (b"{}", b'[{"k":"bind"}]', r"mounts\.json: entry 0.*neither mount nor umount"),
    ],
)
def test_bad_files_beside_it_are_named(
    tmp_path: Path, env: bytes, mounts: bytes, words: str
) -> None:
    with pytest.raises(EtraceError, match=words):
        image_of(tmp_path, "[]", env, mounts)


def test_keys_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    text = '[{"p":1,"q":{"a":[1.5,{"]":"}"}],"é":null},"x":0,"pp":"\\"","o":[{"p":"a","z":-0.1}]}]'
    assert exported(image_of(tmp_path, text))[0]["o"][0]["p"] == "a"


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_no_text_is_too_odd_to_be_shown(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = data.draw(databases().map(lambda entries: json.dumps(entries).encode()))
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 4)))
    noise = data.draw(st.sampled_from([b"", b'"', b"\\", b"[", b"}", b"-", b"9" * 30, b"\0"]))
    try:
        image = image_of(tmp_path_factory.mktemp("odd"), text[:at] + noise + text[end:])
    except EtraceError:
        return
    exported(image)


# ---- the file ----


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
    with pytest.raises(ImageError, match=f"schema {data[8]}") as caught:
        open_image(newer)
    assert "newer etrace" in caught.value.hint


def test_an_image_of_an_older_schema_says_what_makes_a_new_one(
    lua: tuple[bytes, Image], tmp_path: Path
) -> None:
    _, image = lua
    data = bytearray(image.path.read_bytes())
    data[8] = 0
    older = tmp_path / "older.img"
    older.write_bytes(data)
    with pytest.raises(ImageError, match="schema 0 is older") as caught:
        open_image(older)
    assert "cas cache" in caught.value.hint


def test_an_image_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    image = image_of(tmp_path, "[]")
    before = image.path.read_bytes()
    wrong: list[Any] = [None]
    with pytest.raises(AttributeError):
        write_image(image.path, {}, wrong)
    assert image.path.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))
    assert not list(tmp_path.glob(".*.tmp"))
