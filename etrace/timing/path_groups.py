# SPDX-License-Identifier: Apache-2.0
"""The critical path by phase and program: a path of a thousand steps in a few rows."""

from __future__ import annotations

import os
from dataclasses import dataclass

from etrace.query.phases import Phases
from etrace.query.rows.commands import FORK
from etrace.query.rows.labels import Labels
from etrace.spec.database import NONE
from etrace.timing.critical_path import CriticalPath, Step

FORKED = os.fsdecode(FORK)


@dataclass(frozen=True, slots=True)
class Group:
    """All steps of one program in one phase.

    `phase` is the execution that began the phase, NONE outside of all; `longest` is a step.
    """

    phase: int
    program: str
    n_steps: int
    path_ns: int
    longest: Step


def group_path(found: CriticalPath, phases: Phases, labels: Labels) -> list[Group]:
    """Return the steps of a critical path as groups, the one with most of it first."""
    commands, steps = phases.commands, dict[tuple[int, str], list[Step]]()
    for step in found.steps:
        number = commands.of(step.execution)
        root = NONE if number == NONE else phases.of[number]
        phase = NONE if root == NONE else commands.rows[root]
        program = labels.program(step.execution) or FORKED
        steps.setdefault((phase, program), []).append(step)
    groups = (
        Group(*key, len(own), sum(s.work_ns for s in own), max(own, key=lambda s: s.work_ns))
        for key, own in steps.items()
    )
    return sorted(groups, key=lambda group: -group.path_ns)
