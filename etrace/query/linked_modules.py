# SPDX-License-Identifier: Apache-2.0
"""Executables, shared objects, archives and partial links that the build made."""

from __future__ import annotations

from dataclasses import dataclass

from libetrace.image import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given
from etrace.query.kinds import product
from etrace.query.targets import find_targets

KIND_NAMES = ("archive", "executable", "shared object", "partial link")


@dataclass(frozen=True, slots=True)
class Module:
    """A linked module: row of `paths`, index of KIND_NAMES, rows of the executions that made it."""

    path: int
    kind: int
    executions: tuple[int, ...]

    @property
    def kind_name(self) -> str:
        """Say what it is."""
        return KIND_NAMES[self.kind]


def linked_modules(image: Image, given: Given = EVERYTHING) -> list[Module]:
    """Return each module once, in order of its path; its kind is that of the last link.

    A module is left out when filters hold for none of its opens, or when none of the chosen
    executions made it.
    """
    linked = product(image, "linked", "linked modules")
    makers = set(chosen.executions(image, given.of_executions()))
    found: dict[int, tuple[int, list[int]]] = {}
    for path, kind, execution in zip(
        linked["path"], linked["kind"], linked["execution"], strict=True
    ):
        if execution in makers:
            executions = found.get(path, (0, []))[1]
            found[path] = kind, [*executions, execution]
    wanted = _wanted(image, given)
    return [
        Module(path, kind, tuple(executions))
        for path, (kind, executions) in sorted(found.items())
        if wanted is None or path in wanted
    ]


def _wanted(image: Image, given: Given) -> set[int] | None:
    wanted = None
    if given.paths is not None:
        wanted = set(find_targets(image, given.paths, is_exact=given.is_exact))
    if given.filters:
        opened = image["opens"]["path"]
        passed = {opened[row] for row in chosen.opens(image, Given(filters=given.filters))}
        wanted = passed if wanted is None else wanted & passed
    return wanted
