# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events under the preload backend, built with a dynamic linker.

What the backend cannot see is listed, and is exactly what it does not print
(docs/capture-preload.md).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD, capture, need_root, public_libraries
from built_content import without_objects
from event_programs import SOURCES, build_programs, head_value, programs

#: events that the backend never tells, with their strings
NEVER = re.compile(
    rb"(SysClone|SysCloneFailed|Comm|CN|Mount|MountFailed|Umount|UmountFailed|M[STX])\|"
)
#: program -> what else of it the backend does not tell
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
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="etrace-preload-events-", dir="/tmp") as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="session")
def built(public: Path) -> Path:
    """Build all programs with a dynamic linker; return their folder."""
    build_programs(public / "programs", "LINKING=")
    return public / "programs"


@pytest.fixture
def folder(public: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="run-", dir=public) as name:
        path = Path(name) / "w"
        path.mkdir()
        yield path


@pytest.mark.parametrize("program", programs())
def test_the_library_tells_what_the_program_says(
    program: str, public: Path, built: Path, folder: Path
) -> None:
    source = SOURCES / f"{Path(program).name}.c"
    if head_value(source, "needs") == "root":
        need_root()
    options = [*public_libraries(public), *head_value(source, "options").split()]
    run = capture(PRELOAD, [built / program], folder, options=options)
    assert b"ld.so" not in run.stderr
    trace = trace_lines.parse(run.trace.read_bytes())
    told, _ = trace_lines.expected(run.stdout)
    wanted = {
        name: [line for line in lines if not NEVER.match(line)] for name, lines in told.items()
    }
    root = trace.program(bytes(built / program))
    diff = trace_lines.difference(wanted, without_objects(trace_lines.by_task(trace, root)))
    blind = BLIND.get(source.stem)
    if blind is None and diff:
        pytest.fail(diff, pytrace=False)
    assert (blind is None) == (not diff), f"{program} tells {blind}: take it out of BLIND"
