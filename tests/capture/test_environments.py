# SPDX-License-Identifier: Apache-2.0
"""Environments that are all different: what they cost grows as their number, and none is lost."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from backends import BPF, PTRACE, Backend, capture, need_root
from event_programs import compiled

VARIABLES = 30_000
FEW, MANY = 5, 40  # all of MANY together are more than a capture keeps
MOST = 24  # times the cost, for 8 times the variables; quadratic work is 64 times
FLOOR_S = 0.1


def captured(folder: Path, backend: Backend, n: int) -> tuple[float, Path]:
    """Return the CPU seconds of a capture of `n` executions, and its trace."""
    before = os.times()
    program = compiled("environments", folder, "-static")
    done = capture([program, str(n), str(VARIABLES)], folder, backend=backend, options=["--env"])
    after = os.times()
    assert done.status == 0, done.stderr
    return sum(after[2:4]) - sum(before[2:4]), done.trace


@pytest.mark.parametrize(
    "backend", [PTRACE, pytest.param(BPF, marks=pytest.mark.root)], ids=["ptrace", "bpf"]
)
def test_different_variables_cost_as_much_as_they_are_many(backend: Backend, folder: Path) -> None:
    if backend is BPF:
        need_root()
    few, _ = captured(folder, backend, FEW)
    many, trace = captured(folder, backend, MANY)
    assert many < MOST * max(few, FLOOR_S)
    groups = re.findall(rb"UPID\|(\d+)\n[^!]*!Env\[0\]([0-9a-f]+)=\n", trace.read_bytes())
    assert len(groups) == MANY * VARIABLES
    assert {int(name, 16) for _, name in groups} == set(range(MANY * VARIABLES))
    assert len({upid for upid, _ in groups}) == MANY
