# SPDX-License-Identifier: Apache-2.0
"""Real packages built with and without capture in the same folder: the same files, byte for byte.

The trace of each build is complete as well: it holds the making of every file that the build left.
Sources: Debian's archive (tests/sources.py) and, for the wheel, the Python package index by pip.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD
from built_content import of_trace
from package_builds import (
    BASH,
    JSONCPP_NINJA,
    LUA,
    RUST,
    WHEEL,
    WRITES,
    ZLIB,
    Built,
    chosen,
    run_captured,
)

#: files with the time, process ids or random names in them, also without capture
RUN_DETAILS = re.compile(r"(.*/)?([^/]*\.log|\.ninja_(log|deps)|CMakeConfigureLog\.yaml)")
#: events that bring a path into being, and the string that has it
MAKES = {"RenameTo": "RT", "LinkTo": "LT", "Symlink": "SL"}
#: what libc, the dynamic linker and libselinux open before preload can see it, or for themselves
#: (docs/capture-preload.md)
UNSEEN = re.compile(
    rb"/etc/(ld\.so\.cache|locale\.alias)|/usr/(lib|share)/locale/.*|.*/gconv/.*|/proc/filesystems"
)

pytestmark = pytest.mark.slow
compared = pytest.mark.parametrize(
    "built", chosen(LUA, ZLIB, JSONCPP_NINJA, BASH, WHEEL, RUST), indirect=True
)


def made(trace: trace_lines.Trace) -> set[bytes]:
    """Return every path that the trace says was written, linked or renamed into being."""
    paths = set()
    for events in trace_lines.events_by_task(trace):
        for event in events:
            if event.tag == "Open" and event.args["flags"] & WRITES:
                paths.add(event.strings["FN"])
            elif event.tag in MAKES:
                paths.add(event.strings[MAKES[event.tag]])
    return paths


@compared
def test_capture_changes_no_file(built: Built) -> None:
    wanted, found = built.contents("native"), built.contents("traced")
    assert wanted.keys() >= {*built.package.results}
    assert found.keys() == wanted.keys()
    changed = [name for name in found if found[name] != wanted[name]]
    assert [name for name in changed if not RUN_DETAILS.fullmatch(name)] == []


@compared
def test_the_trace_is_complete(built: Built) -> None:
    paths: set[bytes] = set()
    for text in built.traces():
        trace = trace_lines.parse(text)
        trace_lines.check_stamps(trace, *built.span_ns)
        forks = sum(line.data.startswith(b"SchedFork|") for line in trace.lines)
        assert sum(line.data.startswith(b"Exit|") for line in trace.lines) == forks + 1
        paths |= made(trace)
    before, after = built.contents("source"), built.contents("traced")
    new = [name for name in after if after[name] != before.get(name)]
    assert [name for name in new if os.fsencode(built.tree / name) not in paths] == []
    assert new


@pytest.mark.parametrize("built", chosen(BASH), indirect=True)
def test_bash_starts_thousands_of_programs(built: Built) -> None:
    assert sum(text.count(b"!New_proc|") for text in built.traces()) > 3000


@pytest.mark.parametrize("built", chosen(LUA), indirect=True)
def test_preload_sees_the_same_programs_and_opens_except_what_is_documented(
    built: Built, tmp_path: Path
) -> None:
    tree, trace = tmp_path.resolve() / "build", tmp_path / ".nfsdb"
    built.package.fill(tree)
    run_captured(PRELOAD, built.package.script, tree, trace)
    by_ptrace, opened = of_trace(built.traces()[0], built.tree)
    by_preload, preloaded = of_trace(trace.read_bytes(), tree)
    assert by_ptrace == by_preload
    assert by_ptrace.total() > 100
    missed = {key: n for key, n in (opened - preloaded).items() if not UNSEEN.fullmatch(key[2])}
    assert missed == {}
    assert preloaded - opened == Counter()
