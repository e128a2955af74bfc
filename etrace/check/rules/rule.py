# SPDX-License-Identifier: Apache-2.0
"""What one run of make or ninja declares: targets, and what each needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from os.path import islink, normpath, realpath
from pathlib import Path


@dataclass(slots=True)
class Rule:
    """A file that make or ninja knows. Names are those of the makefile.

    `learned` are inputs that a compiler named in an earlier run: ninja takes them as inputs, but
    the first build is not ordered by them.
    """

    name: str
    needs: tuple[str, ...] = ()
    order_only: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    is_target: bool = True
    is_phony: bool = False
    has_recipe: bool = False
    #: lines before expansion, of make alone
    recipe: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """The rules of one make, by absolute paths; phony targets and files that are not there too."""

    directory: Path
    rules: Mapping[str, Rule]
    #: whether make runs one recipe after the other whatever -j says
    is_serial: bool = False
    makefiles: frozenset[str] = frozenset()
    #: the first of them, where it is known
    makefile: str = ""
    #: "make" or "ninja"
    tool: str = "make"
    #: targets by the command of their recipe, where only one recipe has it; not known of make
    by_command: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: folders that belong to the project, as the tool's generator says
    roots: tuple[str, ...] = ()
    _memory: dict[tuple[frozenset[str], bool], frozenset[str]] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return a name as a path."""
        return absolute(str(self.directory), name)

    @cached_property
    def by_path(self) -> Mapping[str, Rule]:
        """Rules by the paths of their targets."""
        return {self.path(name): rule for name, rule in self.rules.items()}

    def needed(self, targets: Iterable[str], *, order_only: bool) -> frozenset[str]:
        """Return the paths of targets and of all that they need.

        With `order_only`, what is made before them; without it, what makes them stale.
        """
        key = frozenset(targets), order_only
        if key not in self._memory:
            self._memory[key] = frozenset(self._walk(key[0], order_only=order_only))
        return self._memory[key]

    def _walk(self, targets: Iterable[str], *, order_only: bool) -> Iterator[str]:
        todo, seen, together = list(targets), set[str](), set[int]()
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            yield path
            if (rule := self.by_path.get(path)) is None:
                continue
            for names in (rule.needs, rule.also, rule.order_only if order_only else rule.learned):
                if id(names) not in together:  # targets of one edge share it
                    together.add(id(names))
                    todo += map(self.path, names)


_real = cache(realpath)


@cache
def absolute(directory: str, name: str) -> str:
    """Return a name of a makefile as a path without links."""
    path = normpath(f"{directory}/{name}" if not name.startswith("/") else name)
    folder, _, last = path.rpartition("/")
    real = f"{_real(folder or '/').rstrip('/')}/{last}"
    if islink(real):  # noqa: PTH114  a text, for there are many
        real = realpath(real)
    return real if real != path else path
