# SPDX-License-Identifier: Apache-2.0
"""A real trace (Lua, make -j2) parsed as the ancestor's parser did, every difference explained.

A difference belongs to a class of EXPLAINED, which says why ours is right; how many there are of
each class is fixed. Anything else fails.
"""

from __future__ import annotations

import json
import lzma
import os
import stat
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from databases import GOLDEN
from parse.parsing import Products, parse
from reference import parser as reference_parser
from reference import values

Entry = dict[str, Any]

#: class of difference -> how many there are
EXPLAINED = {
    # i: every pipe in this trace is make's jobserver, whose holders have both ends; the ancestor
    # links them to their parents and siblings.
    "jobserver": 42,
    # u: a New_proc on another CPU than index 0 ran on; the ancestor counts it for index 0 too.
    "cpu of the exec": 1,
    # !: the ancestor says 0 for processes whose Exit was never seen; they have no status.
    "no exit status": 2,
}


def unpacked(name: str) -> bytes:
    return lzma.decompress((GOLDEN / name).read_bytes())


@pytest.fixture(scope="module")
def ancestor() -> dict[tuple[int, int], Entry]:
    return {(e["p"], e["x"]): e for e in json.loads(unpacked("lua.ancestor.json.xz"))}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Products:
    return parse([unpacked("lua.nfsdb.xz")], tmp_path_factory.mktemp("lua"))


def without_stat(files: list[Entry]) -> list[Entry]:
    """Return opened files with the access bits alone: the rest is of the machine that parsed.

    The last use (`l`), changes (`t`), uses (`u`) and the state of resolved paths (`f`, `n`) go
    too, which the ancestor lacks.
    """
    return [
        {key: value for key, value in file.items() if key not in "lstufn"} | {"m": file["m"] & 3}
        for file in files
    ]


def explain(key: str, ours: Entry, theirs: Entry) -> str:
    """Return the class of a difference, or a text that is not one."""
    mine, other = ours.get(key), theirs.get(key)
    if key == "i" and mine == [] and other:
        return "jobserver"
    if key == "u" and ours["x"] == 0 and mine == theirs["u"][:-1]:
        return "cpu of the exec"
    if key == "!" and mine is None and other == 0:
        return "no exit status"
    return f"{ours['p']},{ours['x']}: {key}: ours {mine!r}, the ancestor's {other!r}"


def differences(ours: Entry, theirs: Entry) -> Iterator[str]:
    for key in (ours.keys() | theirs.keys()) - {"h"}:  # which the ancestor lacks
        mine, other = ours.get(key), theirs.get(key)
        if key == "o":
            mine, other = without_stat(ours["o"]), without_stat(theirs["o"])
        if key == "c":  # it has no times of forks
            mine = [{"p": child["p"], "f": child["f"]} for child in ours["c"]]
        if mine != other:
            yield explain(key, ours, theirs)


def test_the_same_executions_are_found(
    parsed: Products, ancestor: dict[tuple[int, int], Entry]
) -> None:
    assert [(e["p"], e["x"]) for e in parsed.entries] == sorted(ancestor)
    assert len(parsed.entries) == 239


def test_every_difference_from_the_ancestor_is_explained(
    parsed: Products, ancestor: dict[tuple[int, int], Entry]
) -> None:
    found = Counter(
        difference
        for entry in parsed.entries
        for difference in differences(entry, ancestor[entry["p"], entry["x"]])
    )
    assert found == EXPLAINED


def test_mode_and_size_are_what_lstat_says_on_this_machine(parsed: Products) -> None:
    for entry in parsed.entries:
        for file in entry["o"]:
            path = os.fsencode(file.get("o", file["p"]))
            if not path.startswith(b"/proc/"):
                assert (file["m"] & ~3, file["s"]) == now(path)


def now(path: bytes) -> tuple[int, int]:
    try:
        state = os.lstat(path)
    except OSError:
        return 0, 0
    return 0x40 | stat.S_IFMT(state.st_mode) >> 10, state.st_size


def test_no_group_of_the_environment_is_lost(parsed: Products) -> None:
    """The ancestor's parser lets a later group overwrite an earlier one: 66 keys, 111 upids."""
    assert len(parsed.env) == 66
    assert sum(map(len, parsed.env.values())) == 214


def test_there_are_no_mounts_and_no_problems(parsed: Products) -> None:
    assert parsed.mounts == []
    assert not parsed.has_problems


def test_the_reference_parser_agrees_byte_for_byte(parsed: Products) -> None:
    expected = reference_parser.parse_one(unpacked("lua.nfsdb.xz"))
    assert parsed.raw == values.entries_bytes(expected.entries)
    assert (parsed.env, parsed.mounts) == (expected.env, expected.mounts)
