# SPDX-License-Identifier: Apache-2.0
"""Prerequisites that only dependency files name: they order nothing in the first build.

A makefile that includes what compilers wrote (`-include main.d`, automake's `.deps/main.Po`) has
none of these prerequisites in a clean tree. make prints all prerequisites of a target in one list,
as often as makefiles name them. So what dependency files name as often as the list has it is
learned, and nothing else is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from etrace.rules import dependency_files
from etrace.rules.rule import Rules


def separate(rules: Rules, files: Iterable[str]) -> None:
    """Take from the needs of a make's targets what only some dependency files of it name.

    `files` are makefiles by path, which the build wrote after make had read them.
    """
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for file in files:
        for targets, needs in dependency_files.rules(Path(file)):
            for target in targets:
                named[rules.path(target)].update(map(_name, needs))
    for path, learned in named.items():
        if (rule := rules.by_path.get(path)) is None:
            continue
        others = Counter(rule.needs)
        others.subtract(learned)
        rule.learned += tuple(name for name in dict.fromkeys(rule.needs) if others[name] <= 0)
        rule.needs = tuple(name for name in rule.needs if others[name] > 0)


def _name(text: str) -> str:
    """Return a name as make prints it."""
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    return text
