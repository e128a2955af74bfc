# SPDX-License-Identifier: Apache-2.0
"""What a trace of a build says, without what differs from run to run: programs and opens."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import trace_lines
from backends import Backend, capture

#: names that a tool makes anew in each run
RANDOM = re.compile(rb"/tmp/cc[A-Za-z0-9]{6}(?=\.|$)|(?<=/)st[A-Za-z0-9]{6}$")
Program = tuple[bytes, ...]
Opened = tuple[bytes, bytes, bytes, int]


def content(
    backend: Backend, tree: Path, *options: str
) -> tuple[Counter[Program], Counter[Opened]]:
    """Build `tree` under capture; return its programs, and its opens by program."""
    subprocess.run(["make", "clean"], cwd=tree, check=True, capture_output=True)
    done = capture(backend, ["make", "-j2", "linux"], tree, timeout=400, options=options)
    assert done.status == 0, done.stderr.decode()
    return of_trace(done.trace.read_bytes())


def of_trace(lines_of_trace: bytes) -> tuple[Counter[Program], Counter[Opened]]:
    """Return the programs of a trace, and its opens by program."""
    trace = trace_lines.parse(lines_of_trace)
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


#: shared objects and the cache of the dynamic linker
OF_LINKER = re.compile(rb"FO\|((/usr)?/lib(32)?/.*\.so(\.\d+)*|/etc/ld\.so\.cache)")


def without_objects(tasks: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Leave out what the dynamic linker opened for a program, which says nothing of that."""
    return {name: _without_objects(lines) for name, lines in tasks.items()}


def _without_objects(lines: list[bytes]) -> list[bytes]:
    kept, at = [], 0
    while at < len(lines):
        if lines[at].startswith(b"Open|") and OF_LINKER.fullmatch(lines[at + 2]):
            at += 4  # with its FN, FO and Close
            continue
        kept.append(lines[at])
        at += 1
    return kept
