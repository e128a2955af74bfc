# SPDX-License-Identifier: Apache-2.0
"""A damaged or hostile image is refused, or read within its bounds; it never crashes a reader."""

from __future__ import annotations

import json
import lzma
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from databases import parse_bytes, write_database
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.image.columns import COLUMNS
from libetrace.image.file import Image, NewColumn, NewTable, open_image, write_image
from libetrace.image.header import ALIGNMENT, HEAD, MAGIC, SCHEMA_VERSION, ImageError, align
from trying import amount

from etrace.errors import EtraceError
from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.products import reopen, rewrite
from etrace.nfsdb.to_json import pieces

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
MADE = {"n": "gAE=", "m": 1, "d": {"f": ["/a.c"], "d": [{"n": "A", "v": "1"}], "s": 2, "o": ["/a"]},
        "l": "/lib.so.1", "t": 1}  # fmt: skip


def small_image(folder: Path) -> Path:
    """A few executions with everything that an entry can have."""
    opened = [{"p": "/b", "o": "/c", "b": 1, "e": 2, "m": 97, "s": 3, "l": 9}]
    more = {"h": [{"d": 1, "p": "/b", "m": 1}], "u": [{"c": 1, "t": 2}], "i": [{"p": 1, "x": 0}]}
    entries = [
        {"p": 1, "x": i, "b": "/b", "w": "/", "v": ["a", "b"], "r": {"p": 1, "x": 0}, "o": opened,
         "c": [{"p": 1, "f": 0}], **more, **MADE}
        for i in range(3)
    ]  # fmt: skip
    files = name_files(folder / "x")
    files.json.write_text(json.dumps(entries))
    files.env.write_text('{"A=b":[1]}')
    files.mounts.write_text('[{"p":1,"x":0,"t":1,"k":"mount","source":"/s","target":"/t"}]')
    build_image(files)
    return files.image


def read_all(image: Image) -> None:
    """Go through everything that readers go through."""
    b"".join(pieces(image))
    for row in range(image["paths"].n_rows):
        image.find_path(image.path_string(row))
    for table in image.tables.values():
        try:
            pa.record_batch(table).validate()
        except ValueError:
            assert table.name in ("strings", "added_strings")


def try_to_read(path: Path) -> None:
    try:
        image = reopen(path)
    except (EtraceError, OSError):
        return
    read_all(image)


@pytest.fixture(scope="module")
def image_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small_image(tmp_path_factory.mktemp("small")).read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_cut_image_is_refused(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.img"
    path.write_bytes(image_bytes[: data.draw(st.integers(0, len(image_bytes) - 1))])
    with pytest.raises(EtraceError, match=r"x\.img"):
        reopen(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bits_are_refused_or_read_within_bounds(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(image_bytes)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flipped") / "x.img"
    path.write_bytes(damaged)
    try_to_read(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_number_in_any_column_is_refused_or_read_within_bounds(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "x.img"
    path.write_bytes(image_bytes)
    image = reopen(path)
    table = data.draw(st.sampled_from(sorted(image.tables)))
    column = data.draw(st.sampled_from(sorted(image[table].columns)))
    view = image[table][column]
    if not len(view):
        return
    value = data.draw(
        st.sampled_from([0, 1, 3, 2**7, 2**16, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1])
    )
    raw = bytearray(view.cast("B"))
    at = data.draw(st.integers(0, len(view) - 1)) * view.itemsize
    raw[at : at + view.itemsize] = struct.pack("<Q", value)[: view.itemsize]
    columns = [
        NewColumn(name, info.dtype, bytes(raw) if name == column else image[table][name])
        for name, info in image[table].infos.items()
    ]
    rewrite(image, [NewTable(table, image[table].n_rows, columns)])
    try_to_read(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b'{"attributes":[],"tables":[]}',
        b'{"attributes":{},"tables":{}}',
        b'{"attributes":{},"tables":[]}',
        b'{"attributes":{},"tables":[1]}',
        b'{"attributes":{},"tables":[{"name":[],"rows":0,"columns":[]}]}',
        b'{"attributes":{},"tables":[{"name":"a","rows":0,"columns":[{"name":1}]}]}',
        b'{"attributes":{},"tables":[{"name":"paths","rows":0,"columns":[{"name":1}]}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_header_that_says_nonsense_is_refused(tmp_path: Path, header: bytes) -> None:
    start = -(-(HEAD.size + len(header)) // ALIGNMENT) * ALIGNMENT
    path = tmp_path / "x.img"
    path.write_bytes((HEAD.pack(b"ETRACEDB", 1, len(header), start) + header).ljust(start, b"\0"))
    with pytest.raises(EtraceError, match=r"x\.img"):
        reopen(path)


Change = Callable[[dict[str, Any]], object]


def changed(image_bytes: bytes, path: Path, change: Change) -> Path:
    """Write an image whose header is another one; `change` takes what the header says."""
    n_header = HEAD.unpack_from(image_bytes)[2]
    header = json.loads(image_bytes[HEAD.size : HEAD.size + n_header])
    change(header)
    text = json.dumps(header).encode()
    start, data = align(HEAD.size + len(text)), image_bytes[align(HEAD.size + n_header) :]
    head = HEAD.pack(MAGIC, SCHEMA_VERSION, len(text), start + len(data))
    path.write_bytes((head + text).ljust(start, b"\0") + data)
    return path


def table(header: dict[str, Any], name: str) -> Any:
    return next(each for each in header["tables"] if each["name"] == name)


def column(header: dict[str, Any], name: str) -> Any:
    of, _, own = name.partition(".")
    return next(each for each in table(header, of)["columns"] if each["name"] == own)


def add_column(header: dict[str, Any], **more: Any) -> None:
    """Give a table a column that is as long as another one, or as `more` says."""
    own = {**column(header, "linked.kind"), **more}
    table(header, "linked")["columns"].append(own)


REFUSED: dict[str, Change] = {
    "unknown table '../../outside'": lambda h: h["tables"].append(
        {**table(h, "linked"), "name": "../../outside"}
    ),
    "linked has an unknown column 'bytes'": lambda h: add_column(h, name="bytes", length=1 << 20),
    "linked has an unknown column 'extra'": lambda h: add_column(h, name="extra"),
    "two tables paths": lambda h: h["tables"].append(table(h, "paths")),
    "linked has two columns kind": add_column,
    "no table opens": lambda h: h["tables"].remove(table(h, "opens")),
    "table compilation_headers is missing beside compilations": lambda h: h["tables"].remove(
        table(h, "compilation_headers")
    ),
    "table compilations is missing beside compilation_files": lambda h: h["tables"].remove(
        table(h, "compilations")
    ),
    "path_opens has no column open": lambda h: table(h, "path_opens")["columns"].clear(),
    "path_opens.open is not <u4": lambda h: column(h, "path_opens.open").update(dtype="<u8"),
    "strings.bytes lies outside": lambda h: column(h, "strings.bytes").update(length=1 << 40),
    "linked.kind has 2 elements": lambda h: column(h, "linked.kind").update(length=2),
    "cpus.time_ns has 3 elements for 99": lambda h: (
        table(h, "cpus").update(rows=99), column(h, "cpus.cpu").update(length=99)
    ),
    "paths.opens.start has 1 elements": lambda h: column(h, "paths.opens.start").update(length=1),
    "attribute source_root is 7": lambda h: h["attributes"].update(source_root=7),
    "attribute traces is \\[1": lambda h: h["attributes"].update(traces=[1]),
    "attribute sources is {'json': 1": lambda h: h["attributes"].update(sources={"json": 1}),
    "surrogates not allowed": lambda h: h["attributes"].update(version="\ud800"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_a_header_of_something_else_is_refused_by_name(
    tmp_path: Path, image_bytes: bytes, words: str
) -> None:
    path = changed(image_bytes, tmp_path / "x.img", REFUSED[words])
    with pytest.raises(ImageError, match=words) as caught:
        open_image(path)
    assert caught.value.message.startswith(f"{path}: ")
    assert "cas cache" in caught.value.hint


@pytest.mark.parametrize("key", ["offset", "length", "rows"])
@pytest.mark.parametrize("value", [-64, 1 << 62, 1 << 64, 7, 1.5, "0", None, True])
def test_a_place_or_a_count_that_is_none_is_refused(
    tmp_path: Path, image_bytes: bytes, key: str, value: Any
) -> None:
    def change(header: dict[str, Any]) -> None:
        where = table(header, "opens") if key == "rows" else column(header, "opens.path")
        where[key] = value

    with pytest.raises(ImageError, match=r"x\.img"):
        open_image(changed(image_bytes, tmp_path / "x.img", change))


#: numbers that are not rows
PLAIN = {"executions.index", "cpus.cpu"}
ROWS = [f"{of}.{own}" for of, own, schema in COLUMNS if schema.dtype in ("<u4", "<i4")]


def with_values(image: Image, name: str, value: bytes) -> None:
    """Write an image again with one value in all rows of a column."""
    of, _, own = name.partition(".")
    columns = [
        NewColumn(each, info.dtype, value * info.length if each == own else image[of][each])
        for each, info in image[of].infos.items()
    ]
    rewrite(image, [NewTable(of, image[of].n_rows, columns)])


def test_every_column_of_row_numbers_is_checked(tmp_path: Path) -> None:
    directory = write_database(tmp_path)
    path, sound = directory / ".nfsdb.img", (directory / ".nfsdb.img").read_bytes()
    image = open_image(path)
    there = [name for name in ROWS if image.tables.get(name.partition(".")[0])]
    filled = [name for name in there if image[name.partition(".")[0]].n_rows]
    assert len(filled) >= 20
    for name in filled:
        path.write_bytes(sound)
        with_values(open_image(path), name, (1 << 30).to_bytes(4, "little"))
        if name in PLAIN:
            reopen(path)
            continue
        with pytest.raises(EtraceError, match=f"column {name} holds wrong row numbers"):
            reopen(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("linked.kind", b"\4"),
        ("linked.type", b"\2"),
        ("compilations.type", b"\4"),
        ("compilations.is_child", b"\2"),
        ("compilation_definitions.is_undef", b"\2"),
        ("inherited.descriptor", b"\3"),
        ("mounts.kind", b"\2"),
        ("mounts.ok", b"\2"),
    ],
)
def test_a_kind_that_is_none_is_refused(tmp_path: Path, name: str, value: bytes) -> None:
    image = reopen(small_image(tmp_path))
    with_values(image, name, value)
    with pytest.raises(EtraceError, match=f"column {name} holds wrong kinds"):
        reopen(image.path)


def test_a_language_is_a_word(tmp_path: Path) -> None:
    image = reopen(small_image(tmp_path))
    row = image.find_string(b"/a.c")
    columns = [
        NewColumn(
            name, info.dtype, array("I", [row] * 3) if name == "language" else
            image["compilations"][name],
        )
        for name, info in image["compilations"].infos.items()
    ]  # fmt: skip
    rewrite(image, [NewTable("compilations", 3, columns)])
    with pytest.raises(EtraceError, match=r"compilations\.language holds wrong languages"):
        reopen(image.path)


def test_units_and_meanings_are_those_of_the_schema(tmp_path: Path, image_bytes: bytes) -> None:
    def change(header: dict[str, Any]) -> None:
        column(header, "opens.size").update(unit="\ud800", meaning=7)

    image = open_image(changed(image_bytes, tmp_path / "x.img", change))
    info = image["opens"].infos["size"]
    assert (info.unit, info.meaning) == (
        "bytes",
        "by lstat of the original path, else of the resolved one",
    )


@pytest.mark.slow
def test_crafted_images_are_refused_or_read(tmp_path: Path) -> None:
    fuzzer = Path(__file__).resolve().parents[1] / "fuzz" / "fuzz_images.py"
    runs = str(amount(15, 60))
    words = ["--runs", runs, "--seed", "1", "--seconds", "600", "--build", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, fuzzer, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{runs} crafted" in done.stdout


def test_columns_that_are_no_multiple_of_their_dtype_are_not_written(tmp_path: Path) -> None:
    column = NewColumn("a", "<u4", b"12345")
    with pytest.raises(ValueError, match="5 bytes are not <u4"):
        write_image(tmp_path / "x.img", {}, [NewTable("t", 1, [column])])
    assert list(tmp_path.iterdir()) == []


def test_a_real_image_is_right(tmp_path: Path) -> None:
    text, env, _ = parse_bytes(lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()))
    files = name_files(tmp_path / "x")
    files.json.write_bytes(text)
    files.env.write_bytes(env)
    build_image(files)
    image = reopen(files.image)
    assert len(COLUMNS) > sum(len(table.columns) for table in image.tables.values())
    read_all(image)
