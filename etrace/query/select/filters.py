# SPDX-License-Identifier: Apache-2.0
"""The text of a filter -> its alternatives, checked: docs/queries.md has the grammar.

    filter = all { "or" all }
    all    = part { "and" part }
    part   = "[" pairs "]" | "(" pairs ")" | pairs          brackets may go when there is one part
    pairs  = pair { "," pair }
    pair   = [ key "=" ] value                              without a key: path (opens), cmd (execs)
    value  = "..." | '...' | characters without , ( ) [ ] and quotes

In quotes a backslash takes the next character unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from etrace.errors import EtraceError

#: words of switches: in filters, in targets, and in the parameters of `etrace serve`
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
SWITCH = TRUE + FALSE
#: how a text is compared: as a substring, as a glob, as a regular expression from its start
TYPES = ("sp", "wc", "re")
#: can read, can write, can do both; can only read, can only write
ACCESSES = ("r", "w", "rw", "ro", "wo")
#: keys about one open rather than about the file
OF_ONE_OPEN = frozenset({"access", "link"})
_OPENING = {"[": "]", "(": ")"}
_BARE = r"""[^,()\[\]"']*"""
QUOTE_HINT = 'quote a value that contains , ( ) [ ] or a quote: path="a(1)"'
_JOINT = r"\s*(and|or)\s*(?=[\[(])"


def truth(word: str) -> bool:
    """Read the word of a switch, in any case. EtraceError for other words."""
    if word.lower() not in SWITCH:
        raise EtraceError(
            f"{word!r} is neither true nor false", f"write one of {', '.join(SWITCH)}"
        )
    return word.lower() in TRUE


class Key(NamedTuple):
    """A key of a grammar; `values` are those it may have, none for any text."""

    values: tuple[str, ...] = ()
    is_list: bool = False  #: several values may be joined by |


class Grammar(NamedTuple):
    """The keys of one kind of filter, the key of a bare word, and the keys that `type` affects."""

    option: str
    keys: Mapping[str, Key]
    bare: str
    texts: frozenset[str]


class Part(NamedTuple):
    """The content of one pair of brackets; places are offsets in the text of the filter."""

    values: Mapping[str, str]
    places: Mapping[str, int]

    def is_on(self, key: str) -> bool:
        """Whether a switch was given and is on."""
        return self.values.get(key, "").lower() in TRUE

    @property
    def type(self) -> str:
        """How texts are compared."""
        return self.values.get("type", TYPES[0])


class Filter(NamedTuple):
    """Alternatives; each is a list of parts that must all hold."""

    text: str
    grammar: Grammar
    alternatives: tuple[tuple[Part, ...], ...]


OPENS = Grammar(
    "--filter",
    {
        "path": Key(),
        "type": Key(TYPES),
        "class": Key(
            ("linked", "linked_static", "linked_shared", "linked_exe", "compiled", "plain",
             "compiler", "linker", "binary"),
            is_list=True,
        ),
        "access": Key(ACCESSES),
        "global_access": Key(ACCESSES),
        "exists": Key(("0", "1", "2")),
        "link": Key(SWITCH),
        "source_root": Key(SWITCH),
        "source_type": Key(("c", "c++", "other")),
        "negate": Key(SWITCH),
    },
    bare="path",
    texts=frozenset({"path"}),
)  # fmt: skip
EXECUTIONS = Grammar(
    "--command-filter",
    {
        "bin": Key(),
        "cwd": Key(),
        "cmd": Key(),
        "type": Key(TYPES),
        "class": Key(("compiler", "linker", "command"), is_list=True),
        "ppid": Key(),
        "bin_source_root": Key(SWITCH),
        "cwd_source_root": Key(SWITCH),
        "negate": Key(SWITCH),
    },
    bare="cmd",
    texts=frozenset({"bin", "cwd", "cmd"}),
)


def is_of_opens(filters: Sequence[Filter]) -> bool:
    """Return whether filters have keys about single opens, so that the path alone cannot decide."""
    parts = (part for each in filters for parts in each.alternatives for part in parts)
    return any(OF_ONE_OPEN & part.values.keys() for part in parts)


class FilterError(EtraceError):
    """A malformed filter; the message shows it with a caret below the character."""

    def __init__(self, grammar: Grammar, text: str, at: int, message: str, hint: str = "") -> None:
        # escaped characters have the same width in both lines
        shown = "".join(c if c.isprintable() else "?" for c in text)
        super().__init__(f"{grammar.option}: {message}\n    {shown}\n    {' ' * at}^", hint)
        self.at = at


class _Reader:
    """Goes through a text once, from left to right."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text, self.grammar, self.at = text, grammar, 0

    def wrong(self, at: int, message: str, hint: str = "") -> FilterError:
        return FilterError(self.grammar, self.text, at, message, hint)

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip_blanks(self) -> None:
        while self.next().isspace():
            self.at += 1

    def filter(self) -> Filter:
        alternatives: list[tuple[Part, ...]] = []
        parts: list[Part] = []
        while True:
            parts.append(self.part())
            joint = re.compile(_JOINT).match(self.text, self.at)
            if joint is None:
                break
            self.at = joint.end()
            if joint[1] == "or":
                alternatives.append(tuple(parts))
                parts = []
        self.end()
        return Filter(self.text, self.grammar, (*alternatives, tuple(parts)))

    def end(self) -> None:
        self.skip_blanks()
        at, rest = self.at, self.text[self.at :]
        if rest:
            if rest[0] in ")]":
                raise self.wrong(at, f"{rest[0]!r} was never opened")
            if re.match(r"(and|or)\b", rest):
                raise self.wrong(
                    at, "a part in brackets is missing here", "as in [path=a]and[path=b]"
                )
            raise self.wrong(
                at, "'and' or 'or' is missing between parts", "as in [path=a]or[path=b]"
            )

    def part(self) -> Part:
        self.skip_blanks()
        opening, start = self.next(), self.at
        if opening not in _OPENING:
            return self.pairs(start)
        self.at += 1
        part, closing = self.pairs(start), _OPENING[opening]
        found = self.next()
        if not found:
            raise self.wrong(start, f"{opening!r} is never closed", f"end the part by {closing}")
        if found != closing:
            raise self.wrong(self.at, *self._not_closing(opening, found))
        self.at += 1
        return part

    def _not_closing(self, opening: str, found: str) -> tuple[str, str]:
        if found in ")]":
            return f"{opening!r} is closed by {_OPENING[opening]!r}, not {found!r}", ""
        if found in "[(":
            return f"{found!r} in a value", QUOTE_HINT
        return f"expected ',' or {_OPENING[opening]!r}", QUOTE_HINT

    def pairs(self, start: int) -> Part:
        values: dict[str, str] = {}
        places: dict[str, int] = {}
        while True:
            at = self.at
            key, value_at, value = self.pair()
            if key in values:
                raise self.wrong(at, f"{key!r} is given twice", "join two parts by 'and' or 'or'")
            values[key], places[key] = value, value_at
            if self.next() != ",":
                break
            self.at += 1
        if "type" in values and not self.grammar.texts & values.keys():
            known = ", ".join(sorted(self.grammar.texts))
            raise self.wrong(start, f"'type' without a text to compare ({known})")
        return Part(values, places)

    def pair(self) -> tuple[str, int, str]:
        start = self.at
        name = re.compile(r"\s*([\w-]+)\s*=").match(self.text, start)
        key = self.grammar.bare
        if name is not None:
            key, start = name[1], name.start(1)
            self.at = name.end()
        if key not in self.grammar.keys:
            raise self._unknown_key(start, key)
        at = self.at
        value = self.value()
        if not value and at == self.at:
            hint = QUOTE_HINT if self.next() and self.next() in "[(" else ""
            raise self.wrong(at, f"expected a value for {key!r}", hint)
        self._check(key, value, at)
        return key, at, value

    def _unknown_key(self, at: int, key: str) -> FilterError:
        from etrace.alike import suggestion  # noqa: PLC0415  only for this message

        return self.wrong(at, f"unknown key {key!r}", suggestion(key, list(self.grammar.keys)))

    def _check(self, key: str, value: str, at: int) -> None:
        rule = self.grammar.keys[key]
        if key == "ppid" and not re.fullmatch("-1|[0-9]{1,20}", value):
            raise self.wrong(at, f"{value!r} is not a process")
        for each in value.split("|") if rule.is_list else [value]:
            word = each.lower() if rule.values == SWITCH else each
            if rule.values and word not in rule.values:
                known = ", ".join(rule.values)
                raise self.wrong(at, f"{key!r} cannot be {each!r}", f"it is one of {known}")

    def value(self) -> str:
        quote = self.next()
        if quote and quote in "\"'":
            return self._quoted(quote)
        found = re.compile(_BARE).match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return found[0]

    def _quoted(self, quote: str) -> str:
        start, out = self.at, []
        self.at += 1
        while (c := self.next()) != quote:
            if c == "\\":
                self.at += 1
                c = self.next()
            if not c:
                raise self.wrong(start, f"the quote {quote} is never closed")
            out.append(c)
            self.at += 1
        self.at += 1
        return "".join(out)


def parse(text: str, grammar: Grammar) -> Filter:
    """Parse a filter; FilterError points at the first wrong character."""
    return _Reader(text, grammar).filter()


def parse_opens(texts: Sequence[str]) -> list[Filter]:
    """Read the filters of `--filter`, all of which must hold."""
    return [parse(text, OPENS) for text in texts]


def parse_executions(texts: Sequence[str]) -> list[Filter]:
    """Read the filters of `--command-filter`, all of which must hold."""
    return [parse(text, EXECUTIONS) for text in texts]
