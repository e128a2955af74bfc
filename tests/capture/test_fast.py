# SPDX-License-Identifier: Apache-2.0
"""`--fast`: the trace is the one that plain ptrace gives, with fewer stops."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trace_lines
from backends import BACKENDS, PRELOAD, capture, need_root, need_tool, public_libraries
from built_content import content, without_objects
from event_programs import SOURCES, build_programs, head_value, programs
from sources import fetch

DATA = Path(__file__).resolve().parent.parent / "data"
PTRACE = BACKENDS[0]
#: another build of the tracer has no libraries beside it
FAST = ("--fast", "--libraries", str(PRELOAD.path().with_name("preload")))


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="etrace-fast-events-", dir="/tmp") as name:
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


#: programs that print their environment, which has the library's variables
ENVIRONMENT = ("env",)
#: programs that execute themselves in a root directory without a dynamic linker
STATIC = ("chroot-64", "chroot-32")


@pytest.mark.parametrize("program", [p for p in programs() if p.id not in STATIC])
def test_the_trace_says_what_the_program_says(
    program: str, public: Path, built: Path, folder: Path
) -> None:
    source = SOURCES / f"{Path(program).name}.c"
    if head_value(source, "needs") == "root":
        need_root()
    options = ["--fast", *public_libraries(public), *head_value(source, "options").split()]
    run = capture(PTRACE, [built / program], folder, options=options)
    assert not any(word in run.stderr for word in (b"etrace:", b"ld.so")), run.stderr.decode()
    trace = trace_lines.parse(run.trace.read_bytes())
    wanted, _ = trace_lines.expected(run.stdout)
    got = without_objects(trace_lines.by_task(trace, trace.program(bytes(built / program))))
    if source.stem in ENVIRONMENT:
        wanted.pop(trace_lines.ENVIRONMENT)
        got.pop(trace_lines.ENVIRONMENT)
    if diff := trace_lines.difference(wanted, got):
        pytest.fail(diff, pytrace=False)


def stops(folder: Path, *options: str) -> int:
    need_tool("gcc", "gcc")
    program = folder.with_name("many")
    source = str(DATA / "opens_many.c")
    subprocess.run(["gcc", "-O1", "-o", str(program), source], check=True)
    stats = folder.with_name("stats")
    run = capture(PTRACE, [program, "2000"], folder, options=["--stats", str(stats), *options])
    assert (run.status, run.stderr) == (0, b"")
    trace = trace_lines.parse(run.trace.read_bytes())
    data = [line.data for line in trace.lines]
    assert data.count(b"FO|/etc/passwd") == 2000
    assert not any(b"libetrace-" in line or b"/proc/" in line for line in data)
    return int(json.loads(stats.read_text())["stops"])


def test_a_program_that_opens_files_hardly_stops(folder: Path) -> None:
    assert stops(folder) > 4000
    assert stops(folder, *FAST) < 100


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_build_of_lua_gives_the_trace_of_plain_ptrace(tmp_path: Path) -> None:
    tree = fetch("lua5.4", tmp_path.resolve())
    plain = content(PTRACE, tree)
    assert content(PTRACE, tree, *FAST) == plain
    assert len(list(plain[0].elements())) > 100


def test_the_build_has_its_own_preloaded_library_as_well(folder: Path) -> None:
    library = folder.with_name("other.so")
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(library)]
    source = "int open(const char *name, int flags, ...) { return -1; }"
    subprocess.run(command, input=source, text=True, check=True)
    script = "cat /etc/passwd; echo $?"
    # not in the environment of the tracer: AddressSanitizer refuses to come second
    command = ["env", f"LD_PRELOAD={library}", "sh", "-c", script]
    native = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    run = capture(PTRACE, command, folder, options=FAST)
    assert (run.status, run.stdout) == (native.returncode, native.stdout)
    assert native.stdout == b"1\n"
