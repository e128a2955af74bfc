# SPDX-License-Identifier: Apache-2.0
"""What `make -pn` prints -> the rules of one make.

The form is that of print_file in GNU make's file.c, 4.2 to 4.4; make prints its data base when it
ends, so that of a make that others start is the last one in the text. Rules that make found by
patterns are there for the targets that the goals need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from etrace.rules import generated
from etrace.rules.rule import Rule, Rules, absolute

_BEGIN = "# Make data base, printed on"
_RULE = re.compile(r"(?P<name>[^#\t\s:][^:]*(?::[^\s:][^:]*)*)(?P<colons>::?)(?: (?P<needs>.*))?")
_ALSO = re.compile(r"#\s+(?:Also makes|Peer targets): (.*)")
_PHONY = "#  Phony target (prerequisite of .PHONY)."
_CURRENT = re.compile(r"CURDIR :?= (.*)")
_LIST = re.compile(r"MAKEFILE_LIST :?= (.*)")


def read(text: str, directory: Path) -> Rules | None:
    """Return the rules in what make printed; None when it printed no data base.

    `directory` is where make was started; `-C` may have taken it elsewhere.
    """
    at = text.rfind(_BEGIN)
    if at < 0:
        return None
    lines = text[at:].split("\n")  # a name may have other characters that break lines
    current = next((found[1] for line in lines if (found := _CURRENT.fullmatch(line))), None)
    directory = directory if current is None else Path(current)
    rules = {rule.name: rule for rule in _rules(lines)}
    listed = [found[1].split() for line in lines if (found := _LIST.fullmatch(line))]
    makefiles = {absolute(str(directory), name) for names in listed for name in names}
    is_serial = ".NOTPARALLEL" in rules and rules[".NOTPARALLEL"].is_target
    is_serial = is_serial or any(".WAIT" in rule.needs for rule in rules.values())
    own = generated.roots(directory)
    return Rules(directory, rules, is_serial, frozenset(makefiles), roots=own)


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
                yield _joined(rule)
            rule, is_target = None, True
        elif line == "# Not a target:":
            is_target = False
        elif (found := _RULE.fullmatch(line)) and (rule is None or found["name"] == rule.name):
            # variables of a target have lines before that of its rule: NAME: VARIABLE = VALUE
            needs, _, order = (found["needs"] or "").partition("| ")
            rule = Rule(
                found["name"], tuple(needs.split()), tuple(order.split()), is_target=is_target
            )
        elif rule is not None:
            _read_more(rule, line)
    if rule is not None:
        yield _joined(rule)


def _joined(rule: Rule) -> Rule:
    """Join the lines of a recipe that a backslash continues."""
    pieces: list[list[str]] = []
    is_open = False
    for line in rule.recipe:
        if not is_open:
            pieces.append([])
        is_open = line.endswith("\\")
        pieces[-1].append(line[:-1] if is_open else line)
    if is_open:
        pieces[-1].append("\\")
    rule.recipe = ["".join(each) for each in pieces]
    return rule


def _read_more(rule: Rule, line: str) -> None:
    if line == _PHONY:
        rule.is_phony = True
    elif line.startswith("\t"):
        rule.has_recipe = True
        rule.recipe.append(line.strip())
    elif found := _ALSO.fullmatch(line):
        rule.also = tuple(found[1].split())
