# SPDX-License-Identifier: Apache-2.0
"""The same deterministic work under strace and under each backend: both saw the same, call by call.

strace is the oracle: it reads the same calls by code of other people.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import strace_log
import trace_lines
from backends import PTRACE, capture, need_tool
from event_programs import DATA

# The same names and messages whatever the machine's locale.
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}

Prepare = Callable[[Path], list[str]]


def assert_same(folder: Path, prepare: Prepare) -> strace_log.Tasks:
    """Run what `prepare` says twice in a fresh `folder`, compare, and return what was seen."""
    need_tool("strace", "strace")
    logs = folder.with_name("strace")
    logs.mkdir()
    folder.mkdir()
    traced = strace_log.command(logs / "log", prepare(folder))
    oracle = subprocess.run(traced, cwd=folder, env=ENV, capture_output=True, check=False)
    seen = strace_log.from_strace(logs / "log", os.fsencode(folder))

    shutil.rmtree(folder)
    folder.mkdir()
    run = capture(prepare(folder), folder, env=ENV)
    assert (run.status, run.stdout) == (oracle.returncode, oracle.stdout)
    trace = trace_lines.parse(run.trace.read_bytes())
    names = trace_lines.name_tasks(trace, trace.roots()[0])
    captured = strace_log.from_trace(trace, names)
    diff = strace_log.difference(seen, captured, PTRACE.name)
    if diff:
        pytest.fail(diff, pytrace=False)
    return seen


def kinds(tasks: strace_log.Tasks) -> set[object]:
    return {fact[0] for facts in tasks.values() for fact in facts}


def test_a_build_is_seen_as_strace_sees_it(tmp_path: Path) -> None:
    need_tool("make", "make")
    need_tool("gcc", "gcc")

    def prepare(folder: Path) -> list[str]:
        shutil.copytree(DATA / "tiny_build", folder, dirs_exist_ok=True)
        return ["make"]

    seen = assert_same(tmp_path.resolve() / "build", prepare)
    assert kinds(seen) >= {"exec", "open", "close", "pipe", "dup", "fork", "rename", "link"}
    assert kinds(seen) >= {"symlink", "exit"}
    programs = {fact[1] for facts in seen.values() for fact in facts if fact[0] == "exec"}
    assert len(programs) > 15
    statuses = {fact[1] for facts in seen.values() for fact in facts if fact[0] == "exit"}
    assert {0, 1, 143} <= statuses


@pytest.mark.parametrize("mode", ["-m64", "-m32"])
@pytest.mark.parametrize("seed", [1, 20261121])
def test_random_calls_are_seen_as_strace_sees_them(seed: int, mode: str, tmp_path: Path) -> None:
    need_tool("gcc", "gcc")
    program = tmp_path.resolve() / "workload"
    command: list[str | Path] = ["gcc", "-O1", mode, "-static", "-o", program, DATA / "workload.c"]
    if mode == "-m32":
        multiarch = subprocess.run(
            ["gcc", "-print-multiarch"], capture_output=True, text=True, check=True
        )
        command += ["-idirafter", f"/usr/include/{multiarch.stdout.strip()}"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.fail(f"workload.c does not build; apt-get install gcc-multilib:\n{built.stderr}")
    seen = assert_same(
        tmp_path.resolve() / "work", lambda folder: [str(program), str(seed), "1500"]
    )
    assert sum(map(len, seen.values())) > 3000
    assert kinds(seen) >= {"rename failed", "link failed", "dup", "pipe", "symlink", "exit"}
