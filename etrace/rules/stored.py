# SPDX-License-Identifier: Apache-2.0
"""The rules of makes and ninjas <-> tables of the image: what was declared when it was built."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from libetrace.image.file import Image, NewTable
from libetrace.image.header import group_names

from etrace.postprocess.run import product
from etrace.rules.declared import Asked
from etrace.rules.rule import Rule, Rules
from etrace.spec.builders import MAKE, NINJA
from etrace.spec.database import NONE

TABLES = group_names("rules")
TOOLS = (MAKE, NINJA)
#: values of `rule_prerequisites.kind`, by place
KINDS = ("needs", "order_only", "learned", "also", "waits")
FLAGS = ("is_target", "is_phony", "is_always", "is_intermediate", "has_recipe")
#: values of `rule_files.kind`
MAKEFILE, FOLDER, OWN = range(3)


class Writer:
    """Makes the tables; `number` gives the row of a string."""

    def __init__(self, number: Callable[[bytes], int]) -> None:
        self._number, self._numbers = number, dict[str, int]()
        self._runs = array("I"), array("i"), array("i")
        self._sets = (
            bytearray(), array("I"), bytearray(), array("i"), array("Q", [0]), array("Q", [0]),
        )  # fmt: skip
        self._files = array("I"), bytearray()
        self._flags = tuple(bytearray() for _ in FLAGS)
        self._stems = array("i")
        self._starts = array("Q", [0]), array("Q", [0]), array("Q", [0])
        self._outputs, self._lines = array("I"), array("I")
        self._prerequisites = array("I"), bytearray()

    def write(self, asked: Asked) -> list[NewTable]:
        """Return the tables of all makes and ninjas, in order of time."""
        sets: dict[int, int] = {}
        for row in sorted({*asked.rules, *asked.unknown}):
            rules = asked.rules.get(row)
            if rules is not None and id(rules) not in sets:
                sets[id(rules)] = len(sets)
                self._add_set(rules)
            execution, of, reason = self._runs
            execution.append(row)
            of.append(NONE if rules is None else sets[id(rules)])
            reason.append(NONE if rules is not None else self._string(asked.unknown[row]))
        columns = (
            self._runs, self._sets, self._files, (*self._flags, self._stems, *self._starts),
            (self._outputs,),
            self._prerequisites, (self._lines,),
        )  # fmt: skip
        return [product(name, *each) for name, each in zip(TABLES, columns, strict=True)]

    def _string(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self._number(os.fsencode(text))
        return number

    def _optional(self, text: str) -> int:
        return self._string(text) if text else NONE

    def _add_set(self, rules: Rules) -> None:
        tool, directory, is_serial, goal, files, edges = self._sets
        others = sorted(rules.makefiles - {rules.makefile})
        first = [rules.makefile] if rules.makefile else []
        lists = (
            (MAKEFILE, [*first, *others]),
            (FOLDER, rules.roots),
            (OWN, sorted(rules.own_files)),
        )
        for kind, names in lists:
            self._files[0].extend(map(self._string, names))
            self._files[1].extend(kind for _ in names)
        for edge in _edges(rules):
            self._add_edge(edge)
        tool.append(TOOLS.index(rules.tool))
        directory.append(self._string(str(rules.directory)))
        is_serial.append(rules.is_serial)
        goal.append(self._optional(rules.default_goal))
        files.append(len(self._files[0]))
        edges.append(len(self._stems))

    def _add_edge(self, edge: Sequence[Rule]) -> None:
        rule, (outputs, prerequisites, lines) = edge[0], self._starts
        for column, name in zip(self._flags, FLAGS, strict=True):
            column.append(getattr(rule, name))
        self._stems.append(self._optional(rule.stem))
        self._outputs.extend(self._string(each.name) for each in edge)
        for kind, key in enumerate(KINDS):
            names = getattr(rule, key)
            self._prerequisites[0].extend(map(self._string, names))
            self._prerequisites[1].extend(kind for _ in names)
        self._lines.extend(map(self._string, rule.recipe))
        outputs.append(len(self._outputs))
        prerequisites.append(len(self._prerequisites[0]))
        lines.append(len(self._lines))


def _edges(rules: Rules) -> Iterable[Sequence[Rule]]:
    """Return the rules of each edge: those that share their lists."""
    is_make, found = rules.tool == MAKE, dict[tuple[object, ...], list[Rule]]()
    for rule in rules.rules.values():
        key = (
            *(id(getattr(rule, name)) for name in KINDS), *(getattr(rule, name) for name in FLAGS),
            rule.stem, tuple(rule.recipe), rule.name if is_make and rule.is_target else "",
        )  # fmt: skip
        found.setdefault(key, []).append(rule)
    return found.values()


def are_known(image: Image) -> bool:
    """Whether an image has the rules of its makes and ninjas."""
    return TABLES[0] in image.tables


def read(image: Image) -> Asked:
    """Return what the image has of the rules of each make and ninja."""
    runs, asked = image["rule_runs"], Asked()
    sets = [_read_set(image, row) for row in range(image["rule_sets"].n_rows)]
    columns = (runs[name].tolist() for name in ("execution", "rules", "reason"))
    for row, of, reason in zip(*columns, strict=True):
        if of == NONE:
            asked.unknown[row] = _text(image, reason)
        else:
            asked.rules[row] = sets[of]
    return asked


def _text(image: Image, string: int) -> str:
    return "" if string == NONE else os.fsdecode(image.string(string))


def _texts(image: Image, table: str, rows: Iterable[int]) -> list[str]:
    strings = image[table]["string"]
    return [_text(image, strings[row]) for row in rows]


def _read_set(image: Image, row: int) -> Rules:
    table, kinds = image["rule_sets"], image["rule_files"]["kind"]
    span = table.span("files.start", row)
    files: list[list[str]] = [[], [], []]
    for each, name in zip(span, _texts(image, "rule_files", span), strict=True):
        files[kinds[each]].append(name)
    makefiles, folders, own = files
    rules = (rule for edge in table.span("edges.start", row) for rule in _read_edge(image, edge))
    return Rules(
        Path(_text(image, table["directory"][row])),
        {rule.name: rule for rule in rules},
        is_serial=bool(table["is_serial"][row]),
        makefiles=frozenset(makefiles),
        makefile=next(iter(makefiles), ""),
        default_goal=_text(image, table["default_goal"][row]),
        tool=TOOLS[table["tool"][row]],
        roots=tuple(folders),
        own_files=frozenset(own),
    )


def _read_edge(image: Image, row: int) -> Iterator[Rule]:
    table, kinds = image["rule_edges"], image["rule_prerequisites"]["kind"]
    span = table.span("prerequisites.start", row)
    lists: list[list[str]] = [[] for _ in KINDS]
    for each, name in zip(span, _texts(image, "rule_prerequisites", span), strict=True):
        lists[kinds[each]].append(name)
    shared: dict[str, Any] = {key: tuple(own) for key, own in zip(KINDS, lists, strict=True)}
    shared |= {name: bool(table[name][row]) for name in FLAGS}
    shared["stem"] = _text(image, table["stem"][row])
    shared["recipe"] = _texts(image, "rule_lines", table.span("lines.start", row))
    for name in _texts(image, "rule_outputs", table.span("outputs.start", row)):
        yield Rule(name, **shared)
