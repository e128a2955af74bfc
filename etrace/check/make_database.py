# SPDX-License-Identifier: Apache-2.0
"""What `make -pn` prints -> the rules of one make.

The form is that of print_file in GNU make's file.c, 4.2 to 4.4; make prints its data base when it
ends, so that of a make that others start is the last one in the text. Rules that make found by
patterns are there for the targets that the goals need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from os.path import normpath, realpath
from pathlib import Path

_BEGIN = "# Make data base, printed on"
_RULE = re.compile(r"(?P<name>[^#\t\s:][^:]*(?::[^\s:][^:]*)*)(?P<colons>::?)(?: (?P<needs>.*))?")
_ALSO = re.compile(r"#\s+(?:Also makes|Peer targets): (.*)")
_PHONY = "#  Phony target (prerequisite of .PHONY)."
_CURRENT = re.compile(r"CURDIR :?= (.*)")
_LIST = re.compile(r"MAKEFILE_LIST :?= (.*)")


@dataclass(slots=True)
class Rule:
    """A file that make knows. Names are those of the makefile."""

    name: str
    needs: tuple[str, ...] = ()
    order_only: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    is_target: bool = True
    is_phony: bool = False
    has_recipe: bool = False


@dataclass(frozen=True)
class Rules:
    """The rules of one make, by absolute paths; phony targets and files that are not there too."""

    directory: Path
    rules: Mapping[str, Rule]
    #: whether make runs one recipe after the other whatever -j says
    is_serial: bool = False
    makefiles: frozenset[str] = frozenset()
    _memory: dict[tuple[frozenset[str], bool], frozenset[str]] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return a name as a path."""
        return _path(str(self.directory), name)

    @cached_property
    def by_path(self) -> Mapping[str, Rule]:
        """Rules by the paths of their targets."""
        return {self.path(name): rule for name, rule in self.rules.items()}

    def needed(self, targets: Iterable[str], *, order_only: bool) -> frozenset[str]:
        """Return the paths of targets and of all that they need, order-only ones on demand."""
        key = frozenset(targets), order_only
        if key not in self._memory:
            self._memory[key] = frozenset(self._walk(key[0], order_only=order_only))
        return self._memory[key]

    def _walk(self, targets: Iterable[str], *, order_only: bool) -> Iterator[str]:
        todo, seen = list(targets), set[str]()
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            yield path
            if (rule := self.by_path.get(path)) is None:
                continue
            todo += map(self.path, rule.needs)
            todo += map(self.path, rule.also)
            if order_only:
                todo += map(self.path, rule.order_only)


@cache
def _path(directory: str, name: str) -> str:
    path = normpath(f"{directory}/{name}" if not name.startswith("/") else name)
    real = realpath(path)
    return real if real != path else path


def read(text: str, directory: Path) -> Rules | None:
    """Return the rules in what make printed; None when it printed no data base.

    `directory` is where make was started; `-C` may have taken it elsewhere.
    """
    at = text.rfind(_BEGIN)
    if at < 0:
        return None
    lines = text[at:].splitlines()
    current = next((found[1] for line in lines if (found := _CURRENT.fullmatch(line))), None)
    directory = directory if current is None else Path(current)
    rules = {rule.name: rule for rule in _rules(lines)}
    listed = [found[1].split() for line in lines if (found := _LIST.fullmatch(line))]
    makefiles = {_path(str(directory), name) for names in listed for name in names}
    is_serial = ".NOTPARALLEL" in rules and rules[".NOTPARALLEL"].is_target
    is_serial = is_serial or any(".WAIT" in rule.needs for rule in rules.values())
    return Rules(directory, rules, is_serial, frozenset(makefiles))


def _rules(lines: Iterable[str]) -> Iterator[Rule]:
    is_in_files = is_target = False
    rule: Rule | None = None
    is_target = True
    for line in lines:
        if line == "# Files":
            is_in_files = True
        elif line.startswith("# files hash-table stats:"):
            is_in_files = False
        if not is_in_files:
            continue
        if not line:
            if rule is not None:
                yield rule
            rule, is_target = None, True
        elif line == "# Not a target:":
            is_target = False
        elif rule is None:
            if found := _RULE.fullmatch(line):
                needs, _, order = (found["needs"] or "").partition("| ")
                rule = Rule(
                    found["name"], tuple(needs.split()), tuple(order.split()), is_target=is_target
                )
        else:
            _read_more(rule, line)
    if rule is not None:
        yield rule


def _read_more(rule: Rule, line: str) -> None:
    if line == _PHONY:
        rule.is_phony = True
    elif line.startswith("\t"):
        rule.has_recipe = True
    elif found := _ALSO.fullmatch(line):
        rule.also = tuple(found[1].split())
