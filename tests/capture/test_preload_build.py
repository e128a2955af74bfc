# SPDX-License-Identifier: Apache-2.0
"""A real build under ptrace and preload: the same, but for what is documented."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import sources
import trace_lines
from backends import BACKENDS, PRELOAD, Backend, capture

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: names that a tool makes anew in each run
RANDOM = re.compile(rb"/tmp/cc[A-Za-z0-9]{6}(?=\.|$)|(?<=/)st[A-Za-z0-9]{6}$")
#: what libc and the dynamic linker open for themselves (docs/capture-preload.md)
OF_LIBC = re.compile(rb"/etc/(ld\.so\.cache|locale\.alias)|/usr/(lib|share)/locale/.*|.*/gconv/.*")

Program = tuple[bytes, ...]
Opened = tuple[bytes, bytes, bytes, int]


def content(backend: Backend, tree: Path) -> tuple[Counter[Program], Counter[Opened]]:
    """Build `tree` under capture; return its programs, and its opens by program."""
    subprocess.run(["make", "clean"], cwd=tree, check=True, capture_output=True)
    done = capture(backend, ["make", "-j2", "linux"], tree, timeout=400)
    assert done.status == 0, done.stderr.decode()
    trace = trace_lines.parse(done.trace.read_bytes())
    by_upid: dict[int, list[trace_lines.Line]] = {}
    for line in trace.lines:
        by_upid.setdefault(line.upid, []).append(line)
    programs: Counter[Program] = Counter()
    opens: Counter[Opened] = Counter()
    for lines in by_upid.values():
        program = b""
        for event in trace_lines.events(lines):
            text = {key: RANDOM.sub(b"RANDOM", value) for key, value in event.strings.items()}
            if event.tag == "New_proc":
                program = text["PP"]
                words = [RANDOM.sub(b"RANDOM", word) for word in event.items]
                programs[(text["PI"], program, text["CW"], *words)] += 1
            elif event.tag == "Open":
                opens[(program, text["FN"], text["FO"], event.args["flags"])] += 1
    return programs, opens


def test_lua_has_the_same_programs_and_opens_but_those_of_libc(tmp_path: Path) -> None:
    tree = sources.fetch("lua5.4", tmp_path.resolve())
    by_ptrace, seen = content(BACKENDS[0], tree)
    by_preload, told = content(PRELOAD, tree)
    assert by_ptrace == by_preload
    assert len(list(by_ptrace.elements())) > 100
    assert {key: n for key, n in (seen - told).items() if not OF_LIBC.fullmatch(key[2])} == {}
    assert told - seen == Counter()
