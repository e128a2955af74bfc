# SPDX-License-Identifier: Apache-2.0
"""Real packages under BPF and ptrace: the same events, but for their order."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from backends import BPF, need_root
from built_content import events_of
from package_builds import JSONCPP_NINJA, LUA, ZLIB, Built, chosen, run_captured

#: of the jobs that run at once make gives one its own standard input: which one is a matter of time
CHANCE = (b"", b"Dup oldfd=5,newfd=0,flags=0  ")
#: descriptors of ninja and of its children before they execute: which are free depends on the job
#: that ends first
NUMBER = re.compile(rb"\b((?:old)?fd)\d?=\d+")
pytestmark = [pytest.mark.slow, pytest.mark.root]


def events(trace: bytes, tree: Path) -> Counter[tuple[bytes, bytes]]:
    """Return the events of a build, without what is by chance."""
    found: Counter[tuple[bytes, bytes]] = Counter()
    every = events_of(trace, tree)
    is_by_ninja = any(program.endswith(b"/ninja") for program, _ in every)
    for (program, line), n in every.items():
        is_chance = is_by_ninja and (not program or program.endswith(b"/ninja"))
        found[program, NUMBER.sub(rb"\1", line) if is_chance else line] += n
    del found[CHANCE]
    return found


@pytest.mark.parametrize("built", chosen(LUA, ZLIB, JSONCPP_NINJA), indirect=True)
def test_the_events_are_those_of_ptrace(built: Built, tmp_path: Path) -> None:
    need_root()
    tree, trace = tmp_path.resolve() / "build", tmp_path / ".nfsdb"
    built.package.fill(tree)
    run_captured(BPF, built.package.script, tree, trace)
    expected = events(built.traces()[0], built.tree)
    found = events(trace.read_bytes(), tree)
    assert expected.total() > 1000
    assert found - expected == Counter()
    assert expected - found == Counter()
