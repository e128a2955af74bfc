# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events under the preload backend, built with a dynamic linker.

What the backend cannot see is listed, and is exactly what it does not print
(docs/capture-preload.md).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD, capture, need_root, public_libraries
from built_content import without_objects
from event_programs import SOURCES, build_programs, head_value, programs

#: events that the backend never records, with their strings
NEVER = re.compile(
    rb"(SysClone|SysCloneFailed|Comm|CN|Mount|MountFailed|Umount|UmountFailed|M[STX])\|"
)
#: program -> what else of it the backend does not record
BLIND = {
    "chroot": "where a name leads, in a root directory without /proc",
    "comm": "a thread's name with a newline in it",
    "env": "which variables are the library's own",
    "exec_leader": "threads",
    "exec_thread": "threads",
    "exit": "threads",
    "exit_signal": "threads",
    "int80": "system calls that are not made by libc",
    "mount": "mounts",
    "seccomp": "a program that restricted its own system calls",
    "thread": "threads",
    "undumpable": "what close-on-exec closed, in a program of another user",
}


@pytest.fixture(scope="session")
def linked(reachable: Path) -> Path:
    """Build all programs with a dynamic linker; return their folder."""
    build_programs(reachable / "linked", "LINKING=")
    return reachable / "linked"


@pytest.mark.parametrize("program", programs())
def test_the_library_records_what_the_program_says(
    program: str, reachable: Path, linked: Path, reachable_folder: Path
) -> None:
    source = SOURCES / f"{Path(program).name}.c"
    if head_value(source, "needs") == "root":
        need_root()
    options = [*public_libraries(reachable), *head_value(source, "options").split()]
    run = capture([linked / program], reachable_folder, options=options, backend=PRELOAD)
    assert b"ld.so" not in run.stderr
    trace = trace_lines.parse(run.trace.read_bytes())
    said = trace_lines.without_written(trace_lines.expected(run.stdout)[0])
    wanted = {
        name: [line for line in lines if not NEVER.match(line)] for name, lines in said.items()
    }
    root = trace.program(bytes(linked / program))
    diff = trace_lines.difference(wanted, without_objects(trace_lines.by_task(trace, root)))
    blind = BLIND.get(source.stem)
    if blind is None and diff:
        pytest.fail(diff, pytrace=False)
    assert (blind is None) == (not diff), f"{program} shows {blind}: take it out of BLIND"
