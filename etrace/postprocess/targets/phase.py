# SPDX-License-Identifier: Apache-2.0
"""Commands -> the target that the nearest make or ninja ran them for, where that is known.

Of ninja: the outputs of the edge, by its log (`edges`). Else, and of make: what the command line
asks for when it names one goal. What make runs before it has read its makefiles is for no goal: the
commands of an execution that starts make again in the same process, and those of `$(shell)`, whose
output make itself reads. Everything below a command is for the same target, up to the next make or
ninja. Reasons: docs/decisions/0055-targets.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from libetrace.image.file import NewTable

from etrace.figures import count
from etrace.postprocess.run import Work, product
from etrace.postprocess.targets.finder import TargetFinder
from etrace.spec.database import NONE

TABLES = ("targets", "target_names", "execution_targets")


@dataclass(frozen=True, slots=True)
class TargetPhase:
    """The phase."""

    name: str = "targets"
    tables: tuple[str, ...] = TABLES
    inputs: tuple[str, ...] = ()

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables `targets`, `target_names` and `execution_targets`."""
        finder = TargetFinder(work.image, work.tell)
        finder.run()
        found = finder.found
        names = array("I", map(work.strings.number, found.names))
        return [
            product("targets", found.tool, found.kind, found.outer, found.starts),
            product("target_names", names),
            product("execution_targets", finder.target_of),
        ]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        target_of = tables[2].columns[0].data
        n_known = len(target_of) - target_of.count(NONE)
        n_targets = len(set(target_of) - {NONE})
        return f"{count(n_known, 'execution')} for {count(n_targets, 'target')}"


PHASE = TargetPhase()
