# SPDX-License-Identifier: Apache-2.0
"""Files -> their dependencies (docs/dependencies.md)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.graph import Closure
from libetrace.depend.rules import Rules
from libetrace.image.file import Image

from etrace.query.classes.nearest_command import nearest_commands
from etrace.query.given.target_rules import read_targets
from etrace.query.given.targets import find_targets
from etrace.spec.database import NONE


class Walked(NamedTuple):
    """The closures of some files; `roots` are the rows of these files in `paths`."""

    image: Image
    roots: tuple[int, ...]
    closures: tuple[Closure, ...]

    @property
    def paths(self) -> array[int]:
        """The files of the closures without the roots: sorted rows of `paths`."""
        return join(self.closures, self.roots)

    @property
    def executions(self) -> list[int]:
        """Executions on the way: sorted rows of `executions`."""
        return sorted({row for closure in self.closures for row in closure.executions})

    @property
    def commands(self) -> list[int]:
        """Commands on the way: sorted rows of `executions` that have a program.

        An execution without a program (a thread or fork) is replaced by its nearest command.
        """
        nearest = nearest_commands(self.image["executions"])
        found = {nearest[row] for row in self.executions}
        return sorted(found - {NONE})

    def use_of(self, path: int) -> int:
        """Return the row through which a path was found, -1 when it was not."""
        return max(closure.use_of(path) for closure in self.closures)


def walk(
    dependencies: Dependencies,
    names: Iterable[bytes],
    rules: Rules,
    *,
    is_exact: bool = True,
    reverse: bool = False,
) -> Walked:
    """Resolve names and walk from these files, each by its own rules if the name has any."""
    roots: dict[int, None] = {}
    closures: list[Closure] = []
    for own, some in read_targets(names, rules).items():
        rows = find_targets(dependencies.image, some, is_exact=is_exact)
        roots |= dict.fromkeys(rows)
        closures += dependencies.closures(rows, own, reverse=reverse)
    return Walked(dependencies.image, tuple(roots), tuple(closures))


def deps(dependencies: Dependencies, names: Iterable[bytes], rules: Rules) -> Sequence[bytes]:
    """Return the paths that some files depend on, sorted as bytes."""
    image = dependencies.image
    return [image.path_string(row) for row in walk(dependencies, names, rules).paths]
