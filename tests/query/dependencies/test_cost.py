# SPDX-License-Identifier: Apache-2.0
"""What `cas deps` of one binary costs does not grow with the rest of the build.

Calls of functions are counted, not seconds: they are the same in each run.
"""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder

from etrace.cli.main import cas

N_BUILDS, TIMES, N_SOURCES = 40, 8, 10
#: look-ups by name take log n steps
MOST = 1.5
CREATE = O_WRONLY | O_CREAT


def add_build(trace: TraceBuilder, build: int) -> None:
    """Add a build of one binary in a directory of its own: it is gone when the trace is parsed."""
    folder, first = f"/gone/{build}", (build + 1) * 100
    objects = [f"{folder}/{i}.o" for i in range(N_SOURCES)]
    for i, made in enumerate(objects):
        compiler, temporary = first + i << 22, f"/gone/tmp/cc{build:04}{i:02}.s"
        trace.fork(1 << 22, compiler)
        trace.exec(compiler, "/usr/bin/gcc", ["gcc", "-c", f"{i}.c"], cwd=folder)
        trace.use(compiler, f"{folder}/{i}.c").use(compiler, "/usr/include/stdio.h")
        trace.use(compiler, temporary, flags=CREATE).use(compiler, made, flags=CREATE)
        trace.use(compiler, temporary).exit(compiler)
    linker = first + N_SOURCES << 22
    trace.fork(1 << 22, linker).exec(linker, "/usr/bin/ld", ["ld", "-o", "out"], cwd=folder)
    for made in objects:
        trace.use(linker, made)
    trace.use(linker, f"{folder}/out", flags=CREATE).exit(linker)


def n_calls(folder: Path, n_builds: int) -> int:
    """Return how many functions `cas deps` of the first build's binary calls among n builds."""
    trace = TraceBuilder(cwd="/gone").exec(1 << 22, "/usr/bin/make", ["make"])
    for build in range(n_builds):
        add_build(trace, build)
    folder.mkdir()
    (folder / ".nfsdb").write_bytes(trace.trace())
    where = ["--dbdir", str(folder)]
    assert cas(["parse", "--force", *where]) == 0
    assert cas(["pp", *where]) == 0
    words = ["deps", *where, "/gone/0/out"]
    assert cas(words) == 0  # what is imported and compiled once
    profile = cProfile.Profile()
    assert profile.runcall(cas, words) == 0
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_the_dependencies_of_one_binary_cost_the_same_in_a_large_build(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = n_calls(tmp_path / "one", N_BUILDS)
    many = n_calls(tmp_path / "many", N_BUILDS * TIMES)
    assert "/gone/0/0.c" in capfd.readouterr().out
    assert many <= MOST * one
