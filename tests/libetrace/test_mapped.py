# SPDX-License-Identifier: Apache-2.0
"""A damaged image gives an error or an answer, never a crash, whatever is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libetrace
import pytest
from databases import GCC_MAIN, MAKE, write_database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libetrace.image.file import Image, open_image
from libetrace.image.header import DTYPES, HEAD

VALUES = (0, 1, -1, -2, 7, 1 << 20, (1 << 31) - 1, (1 << 32) - 1, (1 << 62) - 1, -(1 << 62))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return open_image(write_database(tmp_path_factory.mktemp("small")) / ".nfsdb.img")


def questions(db: libetrace.nfsdb) -> Iterator[Callable[[], object]]:
    """Everything that can be asked, one at a time."""
    for entry in db:
        names = [name for name in dir(entry) if not name.startswith("_")]
        for name in names:
            yield lambda entry=entry, name=name: ask(entry, name)  # type: ignore[misc]
        yield lambda entry=entry: ask_all(entry.compilation_info)  # type: ignore[misc]
        yield lambda entry=entry: entry.filtered_opens(wc="*.c")  # type: ignore[misc]
    for file in db.opens_iter():
        yield lambda file=file: ask_all(file)  # type: ignore[misc]
    yield lambda: db[MAKE, 1]
    yield lambda: db["/usr/bin/gcc"]
    yield lambda: dict(db.filemap)
    yield lambda: [db.path_read(path) for path in db.opens_paths()]
    for listed in ("pids", "binary_paths", "linked_modules", "linked_module_paths", "pcp_list"):
        yield getattr(db, listed)
    for condition in ("wc", "re", "has_path"):
        yield lambda condition=condition: db.filtered_paths([[(condition, ".*c")]])  # type: ignore[misc]
    yield lambda: db.filtered_opens(compiled=True, has_access=3, at_source_root=True)
    for name in ("bin", "cwd", "cmd"):
        for test in ("wc", "re", "has_str"):
            yield lambda name=name, test=test: db.filtered_execs([[(f"{name}_{test}", ".*g")]])  # type: ignore[misc]
    yield lambda: db.filtered_execs(has_ppid=MAKE, has_comp_info=True)
    yield lambda: db.filtered_execs([[("is_class", "linker|command")]])
    yield lambda: db.precompute_command_patterns(["*gcc*"])
    yield lambda: db.fdeps("/src/hello", dep_graph=True)
    yield lambda: db.mdeps("/src/hello")
    yield lambda: db.rdeps("/src/main.o", recursive=True)


def ask(thing: object, name: str) -> object:
    value = getattr(thing, name)
    return value() if callable(value) and name != "filtered_opens" else value


def ask_all(thing: object) -> None:
    for name in dir(thing):
        if not name.startswith("_"):
            ask(thing, name)


def interrogate(path: Path) -> int:
    """Ask everything; returns how many questions were refused."""
    refused = 0
    db = libetrace.nfsdb()
    try:
        db.load(path)
    except libetrace.error:
        return 1
    for question in questions(db):
        try:
            question()
        except (libetrace.error, IndexError):
            refused += 1
    return refused


def offsets(image: Image) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield table, column, place in the file, bytes of an element, elements."""
    start = -(-(HEAD.size + int.from_bytes(image.path.read_bytes()[12:16], "little")) // 64) * 64
    for table in image.tables.values():
        for name, info in table.infos.items():
            yield table.name, name, start + info.offset, DTYPES[info.dtype][1], info.length


def test_a_whole_image_answers_every_question(image: Image) -> None:
    assert interrogate(image.path) == 0


@pytest.mark.parametrize("seed", range(12))
def test_any_value_in_any_column_is_survived(image: Image, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = image.path.read_bytes()
    refused = 0
    for _, _, place, size, n in offsets(image):
        if not n:
            continue
        changed = bytearray(data)
        at = place + size * chance.randrange(n)
        value = chance.choice(VALUES) & ((1 << 8 * size) - 1)
        changed[at : at + size] = value.to_bytes(size, "little")
        target = tmp_path / "hostile.img"
        target.write_bytes(changed)
        refused += interrogate(target)
    assert refused > 0


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=9)
)
def test_any_bytes_in_the_columns_are_survived(
    image: Image, tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(image.path.read_bytes())
    first = min(place for _, _, place, _, _ in offsets(image))
    for at, change in flips:
        data[first + at % (len(data) - first)] ^= change
    target = tmp_path / "flipped.img"
    target.write_bytes(data)
    interrogate(target)


def set_value(image: Image, table: str, column: str, row: int, value: int, target: Path) -> Path:
    data = bytearray(image.path.read_bytes())
    for name, own, place, size, n in offsets(image):
        if (name, own) == (table, column):
            assert row < n
            data[place + size * row : place + size * (row + 1)] = value.to_bytes(size, "little")
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(
    ("table", "column", "row", "question"),
    [
        ("executions", "binary", 3, lambda db: db[3].binary),
        ("executions", "cwd", 3, lambda db: db[3].cwd),
        ("executions", "parent", 3, lambda db: db[3].parent),
        ("executions", "argv.start", 4, lambda db: db[3].argv),
        ("executions", "opens.start", 4, lambda db: db[3].opens),
        ("arguments", "string", 3, lambda db: [e.argv for e in db]),
        ("opens", "path", 1, lambda db: db.opens()[1].path),
        ("opens", "path", 1, lambda db: db.filtered_opens(wc="*")),
        ("opens", "original", 1, lambda db: db.opens()[1].original_path),
        ("opens", "execution", 1, lambda db: db.opens()[1].parent),
        ("children", "execution", 1, lambda db: [e.childs for e in db]),
        ("paths", "string", 1, lambda db: db.opens_paths()),
        ("path_opens", "open", 1, lambda db: dict(db.filemap)),
        ("linked", "path", 0, lambda db: db.linked_modules()),
        ("compilations", "files.start", 1, lambda db: db[GCC_MAIN, 1][0].compilation_info.files),
    ],
)
def test_a_row_that_is_not_there_is_named(
    image: Image, tmp_path: Path, table: str, column: str, row: int,
    question: Callable[[libetrace.nfsdb], Any],
) -> None:  # fmt: skip
    size = DTYPES[image[table].infos[column].dtype][1]
    value = (1 << (8 * size - 1)) - 1  # too many whether it has a sign or not
    db = libetrace.nfsdb()
    db.load(set_value(image, table, column, row, value, tmp_path / "hostile.img"))
    with pytest.raises(libetrace.error, match=r"damaged.*cas cache"):
        question(db)


def test_a_ring_of_children_ends(image: Image, tmp_path: Path) -> None:
    db = libetrace.nfsdb()
    db.load(set_value(image, "children", "execution", 0, 0, tmp_path / "ring.img"))
    assert db[1].opens_with_children
