# SPDX-License-Identifier: Apache-2.0
"""Lines of recipes as makefiles have them -> for which targets a command can have run.

A line is known before its variables are expanded. A variable may be any text, but those that make
sets for each target (`$@`, `$(@D)`, `$(@F)`, `$*`, `$<`) are known. Blanks and quotes do not count,
because make starts a simple command without a shell.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from etrace.rules.rule import Rule, Rules

#: targets of a line that are tried one by one; of more, those with names in the command
N_TRIED = 16
#: literal characters that a line needs to show its target: with a name of its own, and without
N_LITERAL, N_LITERAL_OF_MANY = 3, 5
#: parts of a name that are looked up
N_PARTS = 16
#: of parentheses in the name of a variable
N_DEEP = 4
ONE_SHELL = ".ONESHELL"
DOLLAR = "$$"
#: what make does not give the shell
_PREFIX = re.compile(r"^[\s@+-]+")
#: flags of a shell, the next word of which is a command
_RUNS = re.compile(r"-\w*c")


def _nested(begin: str, end: str) -> str:
    """Return the expression of a text in brackets, which may have others in it."""
    inner = other = rf"[^{begin}{end}]*+"
    for _ in range(N_DEEP):
        inner = rf"{other}(?:\{begin}{inner}\{end}{other})*+"
    return rf"\{begin}{inner}\{end}"


_VARIABLE = re.compile(rf"\$(?:{_nested('(', ')')}|{_nested('{', '}')}|.)", re.DOTALL)
_OWN = re.compile(r"\$[({]?[@*<]")
_WHOLE_NAME = re.compile(r"(?:^|[\s'\"])\$(?:@|\(@\)|\{@\})(?=$|[\s'\";)])")
_FIRST_NEED = re.compile(r"\$(?:<|\(<\)|\{<\})")
_MAKE = re.compile(r"\$(?:\(MAKE\)|\{MAKE\})")
_ENDING = re.compile(r"\$[({]@:([^=]*)=([^)}]*)[)}]")
_OTHERWISE_IN_COMMANDS = re.compile(r"[\0$\\]")
_BETWEEN_WORDS = re.compile(r"[\s'\"=;,()&|<>`]+")
_LEFT_OUT = re.compile(r"[\s'\"\\]+")


def is_shell(words: Sequence[str]) -> bool:
    """Whether the arguments of a program are those of a shell."""
    return bool(words) and words[0].endswith("sh")


def shell_command(words: Sequence[str]) -> str | None:
    """Return what a shell was given to run: `sh -c COMMAND`; None for another program."""
    found = (command for flags, command in pairwise(words[1:]) if _RUNS.fullmatch(flags))
    return next(found, None) if is_shell(words) else None


@lru_cache(maxsize=256)
def literal_of(line: str) -> str:
    """Return what is left of a line without variables, blanks and what make does not pass on."""
    text = _VARIABLE.sub(lambda found: "$" if found[0] == DOLLAR else "", line)
    return re.sub(r"[\s@+-]", "", text)


class Lines:
    """The lines of the recipes of a make, by what they have before and after all variables."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        one = rules.rules.get(ONE_SHELL)
        self._is_one_shell = one is not None and one.is_target
        self._joined: dict[str, Sequence[str]] = {}
        #: line -> path of a target -> places of the line in its recipe
        self._groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._by_need: dict[str, list[str]] = defaultdict(list)
        for path, each in rules.by_path.items():
            if not each.is_target:
                continue
            for place, line in enumerate(self.of(path)):
                self._groups[line][path].append(place)
            if each.recipe and each.needs:
                self._by_need[each.needs[0]].append(path)
        self._whole: dict[str, list[str]] = defaultdict(list)
        #: parts and line: by a word, where fewer lines have that than the same ends, or by ends
        self._by_word: dict[str, list[tuple[list[str], str]]] = defaultdict(list)
        self._by_ends: dict[tuple[str, str], list[tuple[list[str], str]]] = defaultdict(list)
        #: by line, and the target whose variables are known
        self._parts: dict[tuple[str, str], list[str]] = {}
        self._found: dict[str, tuple[str, ...]] = {}
        words = {line: _words(line) for line in self._groups}
        n_lines = Counter(chain.from_iterable(words.values()))
        parts_of = {line: _parts(line) for line in self._groups}
        n_alike = Counter((parts[0], parts[-1]) for parts in parts_of.values())
        for line, parts in parts_of.items():
            ends = parts[0], parts[-1]
            word = min(words[line], key=lambda each: (n_lines[each], each), default="")
            if len(parts) == 1:
                self._whole[parts[0]].append(line)
            elif word and n_lines[word] < n_alike[ends]:
                self._by_word[word].append((parts, line))
            else:
                self._by_ends[ends].append((parts, line))
        self._lengths = {(len(first), len(last)) for first, last in self._by_ends}

    def of(self, path: str) -> Sequence[str]:
        """Return what make gives a shell for a target, before expansion."""
        lines = self._rules.by_path[path].recipe
        if self._is_one_shell and len(lines) > 1:
            if path not in self._joined:
                self._joined[path] = ["\n".join(_PREFIX.sub("", line) for line in lines)]
            return self._joined[path]
        return lines

    def can_be(self, text: str, path: str, line: str) -> bool:
        """Whether a command can be a line of a target."""
        if not _has_parts(_squeezed(text), self._parts_of(line, path)):
            return False
        name = self._rules.by_path[path].target
        is_one_word = _WHOLE_NAME.search(line) and not _BETWEEN_WORDS.search(name)
        return not is_one_word or name in _tokens(text)

    def with_command(self, text: str) -> frozenset[str]:
        """Return the targets of the lines that a command can be."""
        return frozenset[str]().union(*map(self._groups.__getitem__, self.matching(text)))

    def places(self, text: str, target: str) -> list[int]:
        """Return the places in a target's recipe that a command can have."""
        return sorted(
            place for line in self.matching(text)
            for place in self._groups[line].get(target, ()) if self.can_be(text, target, line)
        )  # fmt: skip

    def shown(self, text: str) -> frozenset[str] | None:
        """Return the targets that a command shows that it is for; None when it may be for many.

        Lines of which little but variables is known show nothing, and a line of which all is known
        shows more than those with variables.
        """
        found, exact = set[str](), set[str]()
        for line in self.matching(text):
            targets: Iterable[str] = self._groups[line]
            is_own = _OWN.search(line) is not None
            if len(self._groups[line]) > N_TRIED:
                if not is_own:
                    return None
                targets = self.named(line, text)
            for path in targets:
                rule = self._rules.by_path[path]
                parts = self._parts_of(line, path)
                n_literal = sum(map(len, parts)) + len(_MAKE.findall(line)) * N_LITERAL
                if rule.needs and _FIRST_NEED.search(line):
                    n_literal += len(rule.needs[0])
                if len(parts) > 1 and n_literal < (N_LITERAL if is_own else N_LITERAL_OF_MANY):
                    continue
                if not is_own or (
                    self.can_be(text, path, line) and _has_first_need(line, rule, text)
                ):
                    found.add(path)
                    if len(parts) == 1 and is_own:
                        exact.add(path)
            if len(found) > N_TRIED:
                return None
        return frozenset(exact or found)

    def named(self, line: str, text: str) -> set[str]:
        """Return the targets of a line whose name or first input a command has as a word."""
        own, found = self._groups[line], set[str]()
        for token in _tokens(text):
            for part in _parts_of_name(token):
                if part in self._rules.rules and (path := self._rules.path(part)) in own:
                    found.add(path)
                if len(known := self._by_need.get(part, ())) <= N_TRIED:
                    found.update(path for path in known if path in own)
        return found

    def matching(self, text: str) -> tuple[str, ...]:
        """Return the lines that a command can be."""
        if text not in self._found:
            self._found[text] = tuple(self._matching(text))
        return self._found[text]

    def _matching(self, text: str) -> Iterator[str]:
        whole = _squeezed(text)
        yield from self._whole.get(whole, ())
        for word in _tokens(text):
            for parts, line in self._by_word.get(word, ()):
                if _has_parts(whole, parts):
                    yield line
        for n_first, n_last in self._lengths:
            ends = whole[:n_first], whole[max(len(whole) - n_last, 0) :]
            for parts, line in self._by_ends.get(ends, ()):
                if _has_parts(whole, parts):
                    yield line

    def _parts_of(self, line: str, path: str) -> list[str]:
        """Return the parts of a line in the recipe of a target."""
        key = line, path if _OWN.search(line) else ""
        if key not in self._parts:
            self._parts[key] = _parts(line, _values(self._rules.by_path[path]))
        return self._parts[key]


def _has_first_need(line: str, rule: Rule, text: str) -> bool:
    """Whether a command has the first input of a target where a line has it."""
    if not _FIRST_NEED.search(line):
        return True
    need = rule.needs[0] if rule.needs else ""
    return any(each == need or each.endswith(f"/{need}") for each in _tokens(text))


def _values(rule: Rule) -> Callable[[str], str | None]:
    """Return what gives the text that a variable has in the recipe of a target, if it is known."""
    folder, _, last = rule.target.rpartition("/")
    known = {"@": rule.target, "@D": folder or ".", "@F": last}
    if rule.stem:
        known["*"] = rule.stem

    def value_of(variable: str) -> str | None:
        if found := _ENDING.fullmatch(variable):
            end, other = (each.removeprefix("%") for each in found.groups())
            if rule.target.endswith(end):
                return rule.target.removesuffix(end) + other
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
    for found in _VARIABLE.finditer(literal):
        text += literal[at : found.start()]
        at = found.end()
        value = "$" if found[0] == DOLLAR else value_of(found[0]) if value_of else None
        if value is None:
            parts.append(_squeezed(text))
        text = "" if value is None else text + value
    return [*parts, _squeezed(text + literal[at:])]


def _words(line: str) -> set[str]:
    """Return the words of a line that a command has too: none with a variable."""
    literal = _VARIABLE.sub("\0", _PREFIX.sub("", line))
    words = _BETWEEN_WORDS.split(literal)
    return {word for word in words if word and not _OTHERWISE_IN_COMMANDS.search(word)}


def _has_parts(whole: str, parts: Sequence[str]) -> bool:
    """Whether a text has these parts in their order, the first and last ones at its ends.

    The others are taken where they are first. That takes time by the length of the text only.
    """
    if len(parts) == 1:
        return whole == parts[0]
    first, *middle, last = parts
    at, end = len(first), len(whole) - len(last)
    if at > end or not (whole.startswith(first) and whole.endswith(last)):
        return False
    for part in middle:
        at = whole.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


@lru_cache(maxsize=256)
def _squeezed(text: str) -> str:
    """Return a text without blanks, quotes and backslashes."""
    return _LEFT_OUT.sub("", text)


@lru_cache(maxsize=256)
def _tokens(text: str) -> frozenset[str]:
    """Return the words of a command."""
    return frozenset(_BETWEEN_WORDS.split(text))
