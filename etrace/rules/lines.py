# SPDX-License-Identifier: Apache-2.0
"""The recipes of a make, by line -> for which targets a command can have run.

Lines are those of the makefile: a variable may be any text, but those that make sets for each
target (`$@`, `$(@D)`, `$(@F)`, `$*`, `$<`) are known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set

from etrace.rules.rule import Rule, Rules

#: targets of a line that are tried one by one; of more, those with names in the command
N_TRIED = 16
#: literal characters that a line needs to show its target: with a name of its own, and without
N_LITERAL, N_LITERAL_OF_MANY = 3, 5
#: parts of a name that are looked up
N_PARTS = 16
#: what make does not give the shell
_PREFIX = re.compile(r"^[\s@+-]+")
VARIABLE = re.compile(r"\$(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\{[^{}]*\}|[^$])")
_OWN = re.compile(r"\$[({]?[@*<]")
_WHOLE_NAME = re.compile(r"(?:^|[\s'\"])\$(?:@|\(@\)|\{@\})(?=$|[\s'\";)])")
_FIRST_NEED = re.compile(r"\$(?:<|\(<\)|\{<\})")
_ENDING = re.compile(r"\$[({]@:([^=]*)=([^)}]*)[)}]")
_BETWEEN_WORDS = re.compile(r"[\s'\"=;,()&|<>`]+")


class Lines:
    """The lines of the recipes of a make, by what they have before and after all variables."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        #: line -> path of a target -> places of the line in its recipe
        self._groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._by_need: dict[str, list[str]] = defaultdict(list)
        for path, each in rules.by_path.items():
            if not each.is_target:
                continue
            for place, line in enumerate(each.recipe):
                self._groups[line][path].append(place)
            if each.recipe and each.needs:
                self._by_need[each.needs[0]].append(path)
        self._whole: dict[str, list[str]] = defaultdict(list)
        self._by_ends: dict[tuple[str, str], list[tuple[list[str], str]]] = defaultdict(list)
        for line in self._groups:
            parts = _parts(line)
            if len(parts) == 1:
                self._whole[parts[0]].append(line)
            else:
                self._by_ends[parts[0], parts[-1]].append((parts[1:-1], line))
        self._lengths = {(len(first), len(last)) for first, last in self._by_ends}
        self._found: dict[str, tuple[str, ...]] = {}

    def with_command(self, text: str) -> frozenset[str]:
        """Return the targets of the lines that a command can be."""
        return frozenset[str]().union(*map(self._groups.__getitem__, self._lines(text)))

    def places(self, text: str, target: str) -> list[int]:
        """Return the places in a target's recipe that a command can have."""
        lines = (self._groups[line] for line in self._lines(text))
        return sorted(place for own in lines for place in own.get(target, ()))

    def shown(self, text: str) -> frozenset[str] | None:
        """Return the targets that a command shows that it is for; None when it may be for many.

        Lines of which little but variables is known show nothing.
        """
        tokens, whole = frozenset(_BETWEEN_WORDS.split(text)), _squeezed(text)
        found = set[str]()
        for line in self._lines(text):
            targets: Iterable[str] = self._groups[line]
            is_own = _OWN.search(line) is not None
            if len(self._groups[line]) > N_TRIED:
                if not is_own:
                    return None
                targets = {each for each in self._named(tokens) if each in self._groups[line]}
            for path in targets:
                rule = self._rules.by_path[path]
                parts = _parts(line, _values(rule))
                n_literal = sum(map(len, parts))
                if rule.needs and _FIRST_NEED.search(line):
                    n_literal += len(rule.needs[0])
                if len(parts) > 1 and n_literal < (N_LITERAL if is_own else N_LITERAL_OF_MANY):
                    continue
                if not is_own or _fits(line, rule, parts, whole, tokens):
                    found.add(path)
            if len(found) > N_TRIED:
                return None
        return frozenset(found)

    def _named(self, tokens: Set[str]) -> Iterator[str]:
        """Yield targets of which the words of a command have the name or the first input."""
        for token in tokens:
            for part in _parts_of_name(token):
                yield self._rules.path(part) if part in self._rules.rules else ""
                yield from self._by_need.get(part, ())

    def _lines(self, text: str) -> tuple[str, ...]:
        """Return the lines that a command can be."""
        whole = _squeezed(text)
        if whole not in self._found:
            self._found[whole] = tuple(self._matching(whole))
        return self._found[whole]

    def _matching(self, whole: str) -> Iterator[str]:
        yield from self._whole.get(whole, ())
        for n_first, n_last in self._lengths:
            end = len(whole) - n_last
            if n_first > end:
                continue
            for middle, line in self._by_ends.get((whole[:n_first], whole[end:]), ()):
                if _has_in_order(whole, middle, n_first, end):
                    yield line


def _fits(line: str, rule: Rule, parts: list[str], whole: str, tokens: Set[str]) -> bool:
    """Whether a command can be a line of the recipe of one target."""
    if _WHOLE_NAME.search(line) and rule.name not in tokens:
        return False
    if _FIRST_NEED.search(line):
        need = rule.needs[0] if rule.needs else ""
        if not any(each == need or each.endswith(f"/{need}") for each in tokens):
            return False
    if len(parts) == 1:
        return whole == parts[0]
    end = len(whole) - len(parts[-1])
    if len(parts[0]) > end or not (whole.startswith(parts[0]) and whole.endswith(parts[-1])):
        return False
    return _has_in_order(whole, parts[1:-1], len(parts[0]), end)


def _values(rule: Rule) -> Callable[[str], str | None]:
    """Return what gives the text that a variable has in the recipe of a target, if it is known."""
    folder, _, last = rule.name.rpartition("/")
    known = {"@": rule.name, "@D": folder or ".", "@F": last}
    if rule.stem:
        known["*"] = rule.stem

    def value_of(variable: str) -> str | None:
        if found := _ENDING.fullmatch(variable):
            end, other = (each.removeprefix("%") for each in found.groups())
            if rule.name.endswith(end):
                return rule.name.removesuffix(end) + other
        return known.get(variable.strip("$(){}"))

    return value_of


def _parts_of_name(token: str) -> Iterator[str]:
    """Yield a word, and what is left of it without folders and without endings."""
    folders = token.split("/", N_PARTS)
    for at in range(len(folders)):
        name = "/".join(folders[at:])
        for _ in range(N_PARTS):
            yield name
            name, dot, last = name.rpartition(".")
            if not dot or "/" in last:
                break


def _parts(line: str, value_of: Callable[[str], str | None] | None = None) -> list[str]:
    """Return the texts of a line between its variables, each of which may be any text."""
    literal = _PREFIX.sub("", line)
    parts, text, at = list[str](), "", 0
    for found in VARIABLE.finditer(literal):
        text += literal[at : found.start()]
        at = found.end()
        value = None if value_of is None else value_of(found[0])
        if value is None:
            parts.append(_without_blanks(text))
            text = ""
        else:
            text += value.replace("$", "$$")
    return [*parts, _without_blanks(text + literal[at:])]


def _has_in_order(whole: str, parts: Iterable[str], at: int, end: int) -> bool:
    """Whether a text has these parts in their order, each where it is first.

    That takes time by the length of the text only.
    """
    for part in parts:
        at = whole.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _squeezed(text: str) -> str:
    return _without_blanks(_PREFIX.sub("", text))


def _without_blanks(text: str) -> str:
    return re.sub(r"[\s'\"\\]+", "", text.replace("$$", "$"))
