# SPDX-License-Identifier: Apache-2.0
"""What a trace of a build says, without what differs from run to run: programs and opens."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import trace_lines

#: names that a tool chooses at random in each run
RANDOM = re.compile(
    rb"/tmp/cc[A-Za-z0-9]{6}(?=\.|$)"
    rb"|(?<=/)st[A-Za-z0-9]{6}$"
    rb"|(?<=^/proc/)\d+"
    rb"|(?<=ztest)\d+"  # zlib's configure
    rb"|(?<=TryCompile-)[A-Za-z0-9]{6}|(?<=cmTC_)[0-9a-f]{5}|(?<=\.tmp)[0-9a-f]{5}"  # CMake
)
Program = tuple[bytes, ...]
Opened = tuple[bytes, bytes, bytes, int]


def of_trace(text: bytes, tree: Path | None = None) -> tuple[Counter[Program], Counter[Opened]]:
    """Return the programs of a trace, and its opens by program; a build's tree becomes `<tree>`."""

    def known(value: bytes) -> bytes:
        named = value.replace(bytes(tree), b"<tree>") if tree else value
        return RANDOM.sub(b"RANDOM", named)

    programs: Counter[Program] = Counter()
    opens: Counter[Opened] = Counter()
    for events in trace_lines.events_by_task(trace_lines.parse(text)):
        program = b""
        for event in events:
            strings = {key: known(value) for key, value in event.strings.items()}
            if event.tag == "New_proc":
                program = strings["PP"]
                programs[(strings["PI"], program, strings["CW"], *map(known, event.items))] += 1
            elif event.tag == "Open":
                opens[(program, strings["FN"], strings["FO"], event.args["flags"])] += 1
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


def events_of(text: bytes, tree: Path | None = None) -> Counter[tuple[bytes, bytes]]:
    """Return all events of a trace but Usage and Written, each with its program, as lines of text.

    Numbers of processes and sizes are left out, and so is the order: two runs of a parallel build
    differ in that.
    """

    def known(value: bytes) -> bytes:
        named = value.replace(bytes(tree), b"<tree>") if tree else value
        return RANDOM.sub(b"RANDOM", named)

    found: Counter[tuple[bytes, bytes]] = Counter()
    for events in trace_lines.events_by_task(trace_lines.parse(text)):
        program = b""
        for event in events:
            if event.tag in ("Usage", "Written"):
                continue
            if event.tag == "New_proc":
                program = known(event.strings["PP"])
            numbers = b",".join(
                b"%s=%d" % (name.encode(), value)
                for name, value in event.args.items()
                if not name.endswith("size") and not (event.tag == "SchedFork" and name == "pid")
            )
            strings = b" ".join(
                b"%s=%s" % (tag.encode(), known(value)) for tag, value in event.strings.items()
            )
            words = b" ".join(map(known, event.items))
            found[program, b" ".join((event.tag.encode(), numbers, strings, words))] += 1
    return found
