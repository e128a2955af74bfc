# SPDX-License-Identifier: Apache-2.0
"""Real builds traced by the module: as strace sees the same run, and as the ptrace backend does.

tests/data/tiny_build has pipes, links and renames; `tree` is a small package of Debian's, whose
build takes an emulated machine minutes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import strace_log
import trace_lines
from parse.parsing import parse
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
MAKE = b"/usr/bin/make"
FOLDER = b"/run/etrace-build/work"
BUILDS = [
    pytest.param("tiny_build", marks=pytest.mark.phase("build", "tiny_build")),
    pytest.param("tree", marks=[pytest.mark.slow, pytest.mark.phase("build", "tree")]),
]
Entry = dict[str, Any]
#: variables that the ptrace backend gives the build
ADDED = re.compile(rb"Env\[\d+\][AL]SAN_OPTIONS=detect_leaks=0$")


def read(guest: Guest, build: str, how: str) -> Path:
    guest.phase("build", build)
    return guest.work / "out" / f"{build}{how}.nfsdb"


def tasks_of(path: Path) -> tuple[trace_lines.Trace, dict[int, str]]:
    """Read a trace and name the tasks from make on."""
    trace = trace_lines.parse(path.read_bytes())
    return trace, trace_lines.name_tasks(trace, trace.program(MAKE))


@pytest.mark.parametrize("build", BUILDS)
def test_the_module_and_strace_see_the_same_in_one_run(guest: Guest, build: str) -> None:
    trace, names = tasks_of(read(guest, build, ""))
    seen = strace_log.from_strace(guest.work / "out" / f"{build}.strace" / "log", FOLDER)
    diff = strace_log.difference(seen, strace_log.from_trace(trace, names), "module")
    if diff:
        pytest.fail(diff, pytrace=False)
    assert len(seen) > 20
    counts = numbers(guest.work / "out" / f"{build}.counters")
    assert (counts["lost_events"], counts["unread_strings"], counts["races"]) == (0, 0, 0)


@pytest.mark.parametrize("build", BUILDS)
def test_the_module_and_the_ptrace_backend_print_the_same_lines(guest: Guest, build: str) -> None:
    both = []
    for how in (".ptrace", ".alone"):
        trace, _ = tasks_of(read(guest, build, how))
        tasks = trace_lines.by_task(trace, trace.program(MAKE))
        both.append({
            n: [as_called(strace_log.stable(line)) for line in tasks[n] if not ADDED.search(line)]
            for n in tasks
        })  # fmt: skip
    diff = trace_lines.difference(*both)
    if diff:
        pytest.fail(diff[:20000], pytrace=False)


@pytest.mark.parametrize("build", BUILDS)
def test_etrace_parser_makes_the_same_build_of_both(
    guest: Guest, build: str, tmp_path: Path
) -> None:
    rootless, module = (
        executions(read(guest, build, how), tmp_path / f"parsed{how}")
        for how in (".ptrace", ".alone")
    )
    assert len(module) > 20
    assert module == rootless


def as_called(line: bytes) -> bytes:
    """Leave out where /bin leads: 9p, the guest's root, gives the module no target of a link.

    docs/decisions/0025-no-lookups.md; the programs of tests/events run from a tmpfs, which does.
    """
    if line.startswith((b"PI|/usr/bin/", b"PP|/usr/bin/")):
        line = line.replace(b"/usr", b"", 1)
    return re.sub(rb"(progname[ip]size)=\d+", rb"\1", line)


def executions(path: Path, folder: Path) -> dict[tuple[str, int], Entry]:
    """Parse a trace; return what does not differ between two runs of one build."""
    folder.mkdir()
    _, names = tasks_of(path)
    parsed = parse([path.read_bytes()], folder)
    assert not parsed.has_problems
    return {
        (names[entry["p"]], entry["x"]): {
            "program": entry["b"].replace("/usr/bin/", "/bin/"),
            "cwd": entry["w"],
            "argv": [stable(word) for word in entry["v"]],
            "parent": names.get(entry["r"]["p"]),
            "children": [(names[child["p"]], child["f"]) for child in entry["c"]],
            "status": entry.get("!"),
            "files": sorted(
                (stable(file["p"]), stable(file.get("o", "")), file["m"] & 3) for file in entry["o"]
            ),
        }
        for entry in parsed.entries
        if entry["p"] in names and (entry["x"] or names[entry["p"]] != "1")
    }


def stable(text: str) -> str:
    return strace_log.stable(text.encode(errors="surrogateescape")).decode(errors="surrogateescape")
