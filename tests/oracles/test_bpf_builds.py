# SPDX-License-Identifier: Apache-2.0
"""Real packages under BPF and ptrace: the same events, but for their order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from backends import BPF, need_root
from built_content import events_of
from package_builds import JSONCPP_NINJA, LUA, ZLIB, Built, chosen, run_captured

#: of the jobs that run at once make gives one its own standard input: which one is a matter of time
CHANCE = (b"", b"Dup oldfd=5,newfd=0,flags=0  ")
pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(600)]


@pytest.mark.parametrize("built", chosen(LUA, ZLIB, JSONCPP_NINJA), indirect=True)
def test_the_events_are_those_of_ptrace(built: Built, tmp_path: Path) -> None:
    need_root()
    tree, trace = tmp_path.resolve() / "build", tmp_path / ".nfsdb"
    built.package.fill(tree)
    run_captured(BPF, built.package.script, tree, trace)
    expected = events_of(built.traces()[0], built.tree)
    found = events_of(trace.read_bytes(), tree)
    assert expected.total() > 1000
    del found[CHANCE], expected[CHANCE]
    assert found - expected == Counter()
    assert expected - found == Counter()
