# SPDX-License-Identifier: Apache-2.0
"""Limits of resources: a build has those that it was given, and etrace none of the build's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from backends import names_without_module, need_root, need_tool

BIN = Path(sys.executable).parent
BACKENDS = names_without_module()
SHOWN = "ulimit -S -a; ulimit -H -a"
#: less than Python, a trace, or the memory that preload shares takes
LOW = ("-f 10", "-v 6000", "-d 1000", "-n 5", "-s 64", "-t 5", "-l 0", "-u 100", "-c 0")
#: those of them that let no trace be made, unless etrace may raise them
TOO_LOW = ("-f 10", "-v 12000", "-d 1000", "-n 5", "-s 64", "-t 5")
#: strace itself has those of the build
OF_STRACE = ("-v", "-d", "-n", "-t")
#: the right to raise a hard limit, which root has on most machines
WITHOUT_RIGHT = ("setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource")


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of a shell whose `etrace` is ours; bash has every limit."""
    return subprocess.run(
        ["bash", "-c", f"PATH={BIN}:$PATH; {script}"], cwd=folder, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


def run_without_right(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as run() does, without the right to raise a hard limit."""
    need_tool(WITHOUT_RIGHT[0], "util-linux")
    return subprocess.run(
        [*WITHOUT_RIGHT, "bash", "-c", f"PATH={BIN}:$PATH; {script}"], cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def traced(backend: str, script: str) -> str:
    return f"exec etrace run -q --backend {backend} -- bash -c '{script}'"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("limit", LOW)
def test_a_soft_limit_is_the_builds_alone(limit: str, backend: str, folder: Path) -> None:
    low = f"ulimit -S {limit}"
    script = f"{SHOWN}; head -c 40000 /dev/zero >out; echo $?"
    plain = run(f"{low}; bash -c '{script}'", folder)
    done = run(f"{low}; {traced(backend, script)}", folder)
    if backend == "strace" and limit[:2] in OF_STRACE:
        assert (done.returncode, f"for strace (ulimit {limit})" in done.stderr) == (125, True)
        return
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode), done.stderr
    assert (folder / ".nfsdb").stat().st_size > 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("limit", [*LOW, "-f 0", "-v 4000", "-v 20000", "-n 4", "-u 1"])
def test_a_limit_inside_the_build_acts_as_without_a_tracer(
    limit: str, backend: str, folder: Path
) -> None:
    script = f"ulimit {limit}; {SHOWN}; cat in | wc -c; head -c 40000 /dev/zero >out; echo $?"
    (folder / "in").write_text("x" * 5000)
    plain = run(f"exec bash -c '{script}'", folder)
    done = run(traced(backend, script), folder)
    assert (done.stdout, done.returncode) == (plain.stdout, plain.returncode)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("limit", TOO_LOW)
def test_a_hard_limit_that_is_too_low_is_named_before_the_build(
    limit: str, backend: str, folder: Path
) -> None:
    script = f"ulimit {limit}; exec etrace run --backend {backend} -- touch made"
    done = run_without_right(script, folder)
    assert done.returncode == 125
    assert f"(ulimit {limit})" in done.stderr or f"ulimit {limit[:2]} is" in done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("backend", "limit"),
    [
        pytest.param("bpf", "-n 40", marks=pytest.mark.root),
        pytest.param("bpf", "-v 60000", marks=pytest.mark.root),
        ("preload", "-f 20000"),
    ],
)
def test_what_a_backend_alone_needs_is_named_too(backend: str, limit: str, folder: Path) -> None:
    if backend == "bpf":
        need_root()
    script = f"ulimit {limit}; exec etrace run --backend {backend} -- touch made"
    done = run_without_right(script, folder)
    assert (done.returncode, f"(ulimit {limit})" in done.stderr) == (125, True)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_build_does_not_see_how_limits_are_passed_on(backend: str, folder: Path) -> None:
    done = run(f"ulimit -S -n 100; {traced(backend, 'env; cat /proc/$$/environ')}", folder)
    assert (done.returncode, "ETRACE_LIMITS" in done.stdout) == (0, False)


def test_a_program_with_little_memory_is_recorded_by_preload(folder: Path) -> None:
    (folder / "in").touch()
    done = run(traced("preload", "ulimit -v 8000; cat in; cat in"), folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / ".nfsdb").read_bytes().count(f"|{folder}/in\n".encode()) == 4  # FN and FO


def test_a_program_without_room_for_the_library_says_which_limit(folder: Path) -> None:
    done = run(traced("preload", "ulimit -v 2850; exec /bin/true"), folder)
    if done.returncode == 127:
        pytest.skip("this libc does not start at all in so little memory")
    assert "another PID or user namespace" not in done.stderr


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "preload"])
def test_a_trace_that_meets_the_limit_is_named_and_the_build_goes_on(
    backend: str, folder: Path
) -> None:
    big = r'x=$(head -c 60000 /dev/zero | tr "\\0" x)'
    script = f"{big}; for i in $(seq 40); do /bin/true $x; done; echo end"
    done = run_without_right(f"ulimit -f 1100; {traced(backend, script)}", folder)
    assert (done.returncode, done.stdout) == (125, "end\n")
    assert "File too large" in done.stderr
    assert ".nfsdb" in done.stderr
