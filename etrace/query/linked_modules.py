# SPDX-License-Identifier: Apache-2.0
"""Executables, shared objects, archives and partial links that the build made, and their copies."""

from __future__ import annotations

from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.query.classes.copies import find_copies
from etrace.query.classes.kinds import product
from etrace.query.given import chosen
from etrace.query.given.chosen import EVERYTHING, Given
from etrace.query.given.targets import find_targets

KIND_NAMES = ("archive", "executable", "shared object", "partial link")


@dataclass(frozen=True, slots=True)
class Module:
    """A linked module: row of `paths`, index of KIND_NAMES, rows of the executions that made it."""

    path: int
    kind: int
    executions: tuple[int, ...]
    copy_of: int | None = None  #: row of `paths` of the module

    @property
    def kind_name(self) -> str:
        """Say what it is."""
        return KIND_NAMES[self.kind]


def linked_modules(
    image: Image, given: Given = EVERYTHING, *, with_copies: bool = False
) -> list[Module]:
    """Return the distinct modules, sorted by path; the last link decides the kind.

    A module is left out when none of its opens matches the filters, or when no selected execution
    made it. With `with_copies`, copies of modules count as modules.
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
    modules = {path: Module(path, kind, tuple(by)) for path, (kind, by) in found.items()}
    if with_copies:
        modules |= _copies(image, set(makers))
    wanted = _wanted(image, given)
    return [modules[path] for path in sorted(modules) if wanted is None or path in wanted]


def _copies(image: Image, makers: set[int]) -> dict[int, Module]:
    kinds = dict(zip(image["linked"]["path"], image["linked"]["kind"], strict=True))
    return {
        path: Module(path, kinds[copy.module], (copy.execution,), copy.module)
        for path, copy in find_copies(image).items()
        if copy.execution in makers
    }


def _wanted(image: Image, given: Given) -> set[int] | None:
    wanted = None
    if given.paths is not None:
        wanted = set(find_targets(image, given.paths, is_exact=given.is_exact))
    if given.filters:
        opened = image["opens"]["path"]
        passed = {opened[row] for row in chosen.opens(image, Given(filters=given.filters))}
        wanted = passed if wanted is None else wanted & passed
    return wanted
