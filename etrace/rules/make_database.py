# SPDX-License-Identifier: Apache-2.0
"""What `make -pn` prints -> the rules of one make.

The form is that of print_file and print_commands in GNU make's file.c and commands.c and of
print_variable in its variable.c, 4.2 to 4.4; make prints its data base when it ends, so that of a
make that others start is the last one in the text. Rules that make found by patterns are there for
the targets that the goals need.

make escapes nothing. The line of a file is followed by remarks in fixed words. These distinguish it
from variables of a target, whose values may have any text. A name with blanks is known as such
because each prerequisite has a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from etrace.rules import generated
from etrace.rules.rule import Rule, Rules, absolute, merged

_BEGIN = "# Make data base, printed on"
_PHONY = "#  Phony target (prerequisite of .PHONY)."
#: one of these is the line after that of a file and its prerequisites
_AFTER = frozenset((
    "#  Precious file (prerequisite of .PRECIOUS).",
    _PHONY,
    "#  Command line target.",
    "#  A default, MAKEFILES, or -include/sinclude makefile.",
    "#  Builtin rule",
    "#  Implicit rule search has been done.",
    "#  Implicit rule search has not been done.",
))  # fmt: skip
_ALSO = "#  Also makes: "
_INTERMEDIATE = "#  File is an intermediate prerequisite."
_STEM = re.compile(r"#  Implicit/static pattern stem: '(.*)'")
_RECIPE = re.compile(r"#  recipe to execute (?:\(built-in\)|\(from '.*', line \d+\)):")
_END = re.compile(r":(?=:?(?: |$))")
_ORIGIN = re.compile(
    r"# (?:default|environment|makefile|environment under -e|command line|'override' directive)"
    r"(?: private)?(?P<place> \(from '.*', line \d+\))?"
)
_VALUE = re.compile(r"(?P<name>.*?) (?P<sign>[:+]?)= (?P<value>.*)")
#: a line of a recipe that changes no file
_NOTHING = re.compile(r"[\s@+-]*(?::|true|#.*)?\s*")
#: of one name: words with blanks between them, and places where it may end
MAX_WORDS, MAX_ENDS = 16, 16
#: words between prerequisites
SIGNS = ("|", ".WAIT")
#: targets with .WAIT between their prerequisites; with more, all recipes count as ordered
MAX_WAITING = 64
WAIT_SINCE = (4, 4)


@dataclass(frozen=True, slots=True)
class Variable:
    """A global variable; `is_own` when no makefile set it."""

    value: str
    #: whether the variables in its value were replaced when it was set
    is_simple: bool
    is_own: bool

    @property
    def text(self) -> str:
        """Return the value as make uses it, of a simple variable."""
        return self.value.replace("$$", "$")


def read(text: str, directory: Path) -> Rules | None:
    """Return the rules in what make printed; None when it printed no data base.

    `directory` is where make was started; `-C` may have taken it elsewhere.
    """
    at = text.rfind(_BEGIN)
    if at < 0:
        return None
    lines = text[at:].split("\n")  # a name may have other characters that break lines
    variables = dict(_variables(lines))
    if (current := variables.get("CURDIR")) is not None and current.is_own:
        directory = Path(current.text)
    is_of_four = _version(variables) >= WAIT_SINCE
    entries = list(_entries(lines))
    names = _Names(entries)
    found: dict[str, list[Rule]] = {}
    for entry in entries:
        rule = _rule(entry, names, has_wait=is_of_four)
        found.setdefault(rule.name, []).append(rule)
    rules = {name: merged(own) for name, own in found.items()}
    listed = variables.get("MAKEFILE_LIST")
    listed_names = names.split(listed.text.strip()) if listed else ()
    makefiles = [absolute(str(directory), name) for name in listed_names]
    default = variables.get(".DEFAULT_GOAL")
    serial = rules.get(".NOTPARALLEL")
    is_serial = serial is not None and serial.is_target and not (is_of_four and serial.needs)
    return Rules(
        directory, rules,
        is_serial or sum(bool(rule.waits) for rule in rules.values()) > MAX_WAITING,
        frozenset(makefiles), next(iter(makefiles), ""),
        roots=generated.roots(directory),
        default_goal=default.text.strip() if default else "",
    )  # fmt: skip


# ---- variables ----


def _version(variables: Mapping[str, Variable]) -> tuple[int, ...]:
    known = variables.get("MAKE_VERSION")
    return tuple(map(int, re.findall(r"\d+", known.value)[:2])) if known else ()


def _variables(lines: Sequence[str]) -> Iterator[tuple[str, Variable]]:
    """Yield the global variables that have one line."""
    is_global, origin, depth = False, None, 0
    for line in lines:
        if line == "# Variables":
            is_global = True
        elif not is_global:
            continue
        elif depth:  # in a `define`, which may have others in it
            word = line.lstrip()
            depth += word.startswith("define ") - (word == "endef")
        elif line == "# variable set hash-table stats:":
            return
        elif origin is not None and line.startswith("define "):
            origin, depth = None, 1
        elif origin is not None and (found := _VALUE.fullmatch(line)):
            is_own, origin = origin["place"] is None, None
            yield found["name"], Variable(found["value"], found["sign"] == ":", is_own)
        else:
            origin = _ORIGIN.fullmatch(line)


# ---- files ----


@dataclass(frozen=True, slots=True)
class _Entry:
    """The lines of one file; a file with a double colon has several."""

    #: its name and prerequisites
    line: str
    is_target: bool
    remarks: frozenset[str]
    also: str
    recipe: list[str]


def _entries(lines: Sequence[str]) -> Iterator[_Entry]:
    """Yield the files that make knows, in its order."""
    at, end = 0, len(lines) - 1
    while at < end:
        line, at = lines[at], at + 1
        if not line or lines[at] not in _AFTER:
            continue
        is_target = lines[at - 2] != "# Not a target:"
        begin = at
        while at < end and lines[at].startswith("# ") and not _RECIPE.fullmatch(lines[at]):
            at += 1  # automatic variables have lines there, too
        remarks = lines[begin:at]
        also = next((each for each in remarks if each.startswith(_ALSO)), "")
        recipe = list[str]()
        if at < end and _RECIPE.fullmatch(lines[at]):
            recipe, at = _recipe(lines, at + 1)
        yield _Entry(line, is_target, frozenset(remarks), also.removeprefix(_ALSO), recipe)


def _recipe(lines: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return the lines of a recipe, those joined that a backslash continues, and what is after."""
    recipe, pieces = list[str](), list[str]()
    prefix = lines[at][:1] if at < len(lines) else ""  # of all lines: .RECIPEPREFIX
    while at < len(lines) and (pieces or lines[at]):
        text, at = lines[at].removeprefix(prefix).lstrip(), at + 1
        if is_open := (len(text) - len(text.rstrip("\\"))) % 2 == 1:
            text = text[:-1]
        pieces.append(text)
        if not is_open:
            recipe.append("".join(pieces).strip())
            pieces = []
    if pieces:
        recipe.append("".join(pieces).strip())
    return recipe, at


def _rule(entry: _Entry, names: _Names, *, has_wait: bool) -> Rule:
    name, is_double, text = names.parts(entry.line)
    # nothing escapes a prerequisite called "|"
    normal, _, order = f" {text} ".partition(" | ")
    needs, waits = _without_waits(names.split(normal[1:].rstrip(" ")), has_wait=has_wait)
    after, more = _without_waits(names.split(order.strip(" ")), has_wait=has_wait)
    has_recipe = not all(map(_NOTHING.fullmatch, entry.recipe))
    return Rule(
        name, needs, after,
        also=tuple(each for each in names.split(entry.also) if each != name),
        is_target=entry.is_target,
        is_phony=_PHONY in entry.remarks,
        is_always=is_double and has_recipe and not needs and not after,
        is_intermediate=_INTERMEDIATE in entry.remarks,
        has_recipe=has_recipe,
        recipe=entry.recipe,
        stem=next((found[1] for each in entry.remarks if (found := _STEM.fullmatch(each))), ""),
        waits=waits + more,
    )  # fmt: skip


def _without_waits(
    names: Iterable[str], *, has_wait: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return prerequisites, and those that come after a .WAIT."""
    needs, waits, is_after = list[str](), list[str](), False
    for name in names:
        if has_wait and name == ".WAIT":
            is_after = True
            continue
        needs.append(name)
        if is_after:
            waits.append(name)
        is_after = False
    return tuple(needs), tuple(waits)


class _Names:
    """The names of all files, by which lines with several of them are split."""

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self._known: set[str] = set()
        #: of names with blanks: how many words they have, by the first of these
        self._lengths: dict[str, set[int]] = {}
        for entry in entries:
            for end in islice(_END.finditer(entry.line), MAX_ENDS):
                self._known.add(entry.line[: end.start()])
        for name in self._known:
            first, blank, _ = name.partition(" ")
            if blank and (n_words := name.count(" ") + 1) <= MAX_WORDS:
                self._lengths.setdefault(first, set()).add(n_words)

    def parts(self, line: str) -> tuple[str, bool, str]:
        """Return the name at the start of a line, whether it has a double colon, and the rest."""
        found = list[tuple[str, bool, str]]()
        for end in islice(_END.finditer(line), MAX_ENDS):
            rest = line[end.end() :]
            found.append((line[: end.start()], rest[:1] == ":", rest.removeprefix(":")[1:]))
        for parts in found if len(found) > 1 else ():
            if all(name in self._known or name in SIGNS for name in self.split(parts[2])):
                return parts
        return found[0] if found else (line, False, "")

    def split(self, text: str) -> tuple[str, ...]:
        """Return the names in a text with blanks between them; of two readings, those of both."""
        words = text.split(" ")
        if self._lengths.keys().isdisjoint(words):
            return tuple(filter(None, words))
        ends = [self._ends(words, at) for at in range(len(words))]
        is_begin = [True] + [False] * len(words)
        for at, own in enumerate(ends):
            for end in own if is_begin[at] else ():
                is_begin[end] = True
        leads = [False] * len(words) + [True]
        for at in reversed(range(len(words))):
            leads[at] = any(leads[end] for end in ends[at])
        return tuple(dict.fromkeys(
            " ".join(words[at:end])
            for at, own in enumerate(ends) for end in own
            if is_begin[at] and (leads[end] or not leads[0]) and words[at:end] != [""]
        ))  # fmt: skip

    def _ends(self, words: Sequence[str], at: int) -> list[int]:
        """Return where a name that begins at a word may end."""
        own = [
            at + n_words for n_words in self._lengths.get(words[at], ())
            if at + n_words <= len(words)
            and " ".join(words[at : at + n_words]) in self._known
        ]  # fmt: skip
        if not own or words[at] in self._known or words[at] in SIGNS:
            own.append(at + 1)
        return own
