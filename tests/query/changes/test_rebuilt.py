# SPDX-License-Identifier: Apache-2.0
"""Why a build made files again: traced builds of make and gcc."""

from __future__ import annotations

import hashlib
import lzma
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from backends import capture, need_tool
from databases import GOLDEN, TRACE, parse_database
from libetrace.image.file import Image, open_image

from etrace.errors import NothingFoundError
from etrace.nfsdb.hashes import add_hashes
from etrace.query.changes.rebuilt import Cache, Cause, Output, Rebuilt, _pairs
from etrace.query.rows.steps import Step

MAKEFILE = """\
CC = gcc
app: a.o b.o
\t$(CC) -o app $(ORDER)
ORDER = a.o b.o
%.o: %.c
\t$(CC) $(CFLAGS) -c $< -o $@
gen.txt: b.c
\tsed s/b/c/ b.c | sort > gen.txt
a.o: a.h
"""


class Tree:
    """A tree that is built again and again; each build has a database of its own."""

    def __init__(self, top: Path) -> None:
        self.top, self.src = top, top / "src"
        self.src.mkdir()
        self.write("Makefile", MAKEFILE)
        self.write("a.h", "#define A 1\n")
        self.write("a.c", '#include "a.h"\nint b(void);\nint main(void) { return A + b(); }\n')
        self.write("b.c", "int b(void) { return 2; }\n")
        self._n = 0

    def write(self, name: str, text: str) -> None:
        (self.src / name).write_text(text)

    def build(self, *words: str, env: Mapping[str, str] | None = None) -> Image:
        """Make everything again."""
        self._n += 1
        folder = self.top / f"db{self._n}"
        folder.mkdir()
        captured = capture(
            ["make", "-B", *(words or ("app",))], self.src, trace=folder / TRACE,
            env={**os.environ, **(env or {})}, options=["--env"],
        )  # fmt: skip
        assert captured.status == 0, captured.stderr.decode()
        return parse_database(folder)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def hashed(image: Image) -> Image:
    """Return a database with the hashes of what is there now."""
    add_hashes(image.path, [], hashes_rest=True)
    return open_image(image.path)


def found(before: Image, after: Image) -> dict[str, Output]:
    rebuilt = Rebuilt(before, after)
    return {Path(os.fsdecode(rebuilt.shown(o.path))).name: o for o in rebuilt.outputs()}


def causes(before: Image, after: Image) -> dict[str, Cause]:
    return {name: output.reason.cause for name, output in found(before, after).items()}


def test_without_a_change_everything_was_made_needlessly(tree: Tree) -> None:
    before = tree.build()
    (tree.src / "a.c").touch()
    assert causes(before, tree.build()) == dict.fromkeys(("a.o", "b.o", "app"), Cause.NEEDLESS)


def test_a_header_reaches_the_program_through_its_object(tree: Tree) -> None:
    before = tree.build()
    tree.write("a.h", "#define A 100\n")
    outputs = found(before, tree.build())
    assert {name: each.reason.cause for name, each in outputs.items()} == {
        "a.o": Cause.INPUT, "b.o": Cause.NEEDLESS, "app": Cause.INPUT,
    }  # fmt: skip
    reason = outputs["app"].reason
    assert reason.what.endswith(b"/a.h")
    assert (reason.before, reason.after) == (b"12", b"14")
    assert len(reason.via) == 1
    assert outputs["a.o"].reason.via == ()


def test_a_change_that_keeps_the_size_is_seen_by_hashes(tree: Tree) -> None:
    before = tree.build()
    tree.write("b.c", "int b(void) { return 3; }\n")
    after = tree.build()
    assert set(causes(before, after).values()) == {Cause.NEEDLESS}
    tree.write("b.c", "int b(void) { return 2; }\n")
    before = hashed(tree.build())
    tree.write("b.c", "int b(void) { return 3; }\n")
    after = hashed(tree.build())
    seen = found(before, after)
    assert {name: output.reason.cause for name, output in seen.items()} == {
        "a.o": Cause.NEEDLESS, "b.o": Cause.INPUT, "app": Cause.INPUT,
    }  # fmt: skip
    digests = [
        f"sha256:{hashlib.sha256(b'int b(void) { return %d; }' % n + bytes([10])).hexdigest()[:12]}"
        for n in (2, 3)
    ]
    reason = seen["b.o"].reason
    assert [reason.before, reason.after] == [digest.encode() for digest in digests]


def test_a_flag(tree: Tree) -> None:
    before = tree.build("app", "CFLAGS=-O1")
    outputs = found(before, tree.build("app", "CFLAGS=-O2"))
    assert {each.reason.cause for each in outputs.values()} == {Cause.FLAG}
    assert (outputs["app"].reason.before, outputs["app"].reason.after) == (b"-O1", b"-O2")


def test_a_variable_that_the_tool_reads(tree: Tree) -> None:
    (tree.top / "include").mkdir()
    before = tree.build(env={"OTHER": "1"})
    outputs = found(before, tree.build(env={"CPATH": str(tree.top / "include"), "OTHER": "2"}))
    reason = outputs["b.o"].reason
    assert (reason.cause, reason.what, reason.before) == (Cause.ENVIRONMENT, b"CPATH", None)


def test_a_variable_that_the_tool_does_not_read(tree: Tree) -> None:
    before = tree.build(env={"OTHER": "1"})
    assert set(causes(before, tree.build(env={"OTHER": "2"})).values()) == {Cause.NEEDLESS}


def test_another_tool(tree: Tree) -> None:
    clang = need_tool("clang", "clang")
    before = tree.build()
    outputs = found(before, tree.build("app", f"CC={clang}"))
    assert {each.reason.cause for each in outputs.values()} == {Cause.TOOL}


def test_the_order_of_the_inputs_and_an_input_less(tree: Tree) -> None:
    before = tree.build()
    after = causes(before, tree.build("app", "ORDER=b.o a.o"))
    assert after == {"a.o": Cause.NEEDLESS, "b.o": Cause.NEEDLESS, "app": Cause.ORDER}
    tree.write("a.c", "int main(void) { return 1; }\n")
    before = tree.build()
    assert causes(before, tree.build("app", "ORDER=a.o"))["app"] == Cause.INPUTS


def test_what_came_through_a_pipe_and_a_new_file(tree: Tree) -> None:
    before = tree.build("gen.txt")
    tree.write("b.c", "int b(void) { return 200; }\n")
    outputs = found(before, tree.build("gen.txt", "app"))
    assert outputs["gen.txt"].reason.cause == Cause.INPUT
    assert outputs["gen.txt"].reason.what.endswith(b"/b.c")
    assert outputs["app"].reason.cause == Cause.NEW


def test_builds_in_two_trees(tree: Tree, tmp_path: Path) -> None:
    before = tree.build()
    other = tmp_path / "other"
    other.mkdir()
    there = Tree(other)
    assert set(causes(before, there.build()).values()) == {Cause.NEEDLESS}


def test_hits_and_misses_of_ccache(tree: Tree) -> None:
    need_tool("ccache", "ccache")
    cache = {"CCACHE_DIR": str(tree.top / "cache")}
    first = tree.build("app", "CC=ccache gcc", env=cache)
    again = tree.build("app", "CC=ccache gcc", env=cache)
    outputs = found(first, again)
    assert outputs.keys() == {"a.o", "b.o", "app"}
    assert outputs["a.o"].cache == outputs["b.o"].cache == Cache.HIT
    assert outputs["a.o"].reason.cause == Cause.NEEDLESS
    tree.write("a.h", "#define A 100\n")
    outputs = found(again, tree.build("app", "CC=ccache gcc", env=cache))
    assert (outputs["a.o"].cache, outputs["b.o"].cache) == (Cache.MISS, Cache.HIT)
    assert outputs["a.o"].reason.cause == outputs["app"].reason.cause == Cause.INPUT


def test_only_files_that_were_made(tree: Tree) -> None:
    image = tree.build()
    rebuilt = Rebuilt(image, image)
    (only,) = rebuilt.outputs([b"a.o"])
    assert rebuilt.shown(only.path).endswith(b"/a.o")
    with pytest.raises(NothingFoundError, match=r"did not make .*/a\.c"):
        rebuilt.outputs([b"a.c"])
    with pytest.raises(NothingFoundError, match="opened no nowhere"):
        rebuilt.outputs([b"nowhere"])


def test_a_build_that_was_parsed_elsewhere_is_its_own_equal(tmp_path: Path) -> None:
    golden = GOLDEN / "lua.nfsdb.xz"
    (tmp_path / TRACE).write_bytes(lzma.decompress(golden.read_bytes()))
    image = parse_database(tmp_path)
    outputs = found(image, image)
    assert {"lua", "liblua.a", "lapi.o"} <= outputs.keys()
    assert {each.reason.cause for each in outputs.values()} == {Cause.NEEDLESS}


def test_makers_of_one_file_are_paired_by_label_then_by_number() -> None:
    def steps(*labels: str) -> list[tuple[Step, str]]:
        return [(Step(head, None), label) for head, label in enumerate(labels)]

    found = _pairs(steps("a", "b", "a", "c", "a"), steps("a", "a", "x", "b"))
    assert {head: step.head for head, step in found.items()} == {0: 0, 1: 3, 2: 1, 3: 3, 4: 1}
