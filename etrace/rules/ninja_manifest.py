# SPDX-License-Identifier: Apache-2.0
"""build.ninja -> its edges: outputs, inputs of each sort, command, dependency file.

The form is that of ninja's manual ("Ninja file reference") and of lexer.in.cc, manifest_parser.cc
and eval_env.cc of ninja 1.10 to 1.13. The order of look-ups is theirs too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path

from etrace.errors import EtraceError
from etrace.rules.dependency_files import text_of_file

#: a comment is kept; `$` before the end of a line joins the next one
_JOINED = re.compile(r"^ *#.*$|\$(?:\r?\n *|.)", re.MULTILINE)
_REFERENCE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+)|(.))", re.ASCII)
_WORD = re.compile(r"(?:\$\{[\w.-]+\}|\$.|[^ :|$])+|\|\||\|@|\||:", re.ASCII)
_BINDING = re.compile(r"([\w.-]+) *= *(.*)", re.ASCII)
_SAFE = re.compile(r"[\w+./-]*", re.ASCII)
MAX_DEPTH = 100
#: of a text with its variables replaced, and of all files that are read
MAX_CHARACTERS, MAX_FILE_CHARACTERS, MAX_FILES = 4 << 20, 1 << 30, 100_000
#: of all names of edges, by what is read
LEAST_NAME_CHARACTERS, MAX_UNFOLDING = 1 << 26, 16
HINT = "does ninja read it?"


@dataclass(slots=True)
class Scope:
    """Variables and rules of a file or an edge."""

    parent: Scope | None = None
    variables: dict[str, str] = field(default_factory=dict)
    rules: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """Return a variable's value, empty without one."""
        scope: Scope | None = self
        while scope is not None:
            if (known := scope.variables.get(name)) is not None:
                return known
            scope = scope.parent
        return ""

    def rule(self, name: str) -> Mapping[str, str] | None:
        """Return the bindings of a rule; None without one."""
        scope: Scope | None = self
        while scope is not None:
            if (known := scope.rules.get(name)) is not None:
                return known
            scope = scope.parent
        return None

    def evaluate(self, text: str) -> str:
        """Return a text with its variables replaced."""
        return _replace(text, self.value) if "$" in text else text


def _replace(text: str, value: Callable[[str], str]) -> str:
    n_characters = 0

    def one(found: re.Match[str]) -> str:
        nonlocal n_characters
        name = found[1] or found[2]
        new = found[3] if name is None else value(name)
        n_characters += len(new)
        if n_characters > MAX_CHARACTERS:  # each variable may double the one before
            raise EtraceError(
                f"build.ninja: a value has more than {MAX_CHARACTERS} characters", HINT
            )
        return new

    return _REFERENCE.sub(one, text)


@dataclass(slots=True)
class Edge:
    """A `build` of the file. Names are canonical, as in ninja's own answers."""

    rule: str
    outputs: tuple[str, ...]
    implicit_outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    implicit: tuple[str, ...]
    order_only: tuple[str, ...]
    scope: Scope
    bindings: Mapping[str, str]

    @property
    def is_phony(self) -> bool:
        """Whether it has no command."""
        return self.rule == "phony"

    def value(self, name: str, *, is_escaped: bool = True) -> str:
        """Return a variable, as ninja has it when it runs the edge."""
        return self._value(name, {}, is_escaped, 0)

    def _value(self, name: str, known: dict[str, str], is_escaped: bool, depth: int) -> str:
        """Return a variable; `known` are those of which it was asked before."""
        if depth > MAX_DEPTH:
            raise EtraceError(f"build.ninja: {self.rule} needs itself", "ninja refuses it too")
        if name not in known:
            known[name] = self._look_up(name, known, is_escaped, depth)
        return known[name]

    def _look_up(self, name: str, known: dict[str, str], is_escaped: bool, depth: int) -> str:
        if name in ("in", "in_newline"):
            return (" " if name == "in" else "\n").join(_escaped(self.inputs, is_escaped))
        if name == "out":
            return " ".join(_escaped(self.outputs, is_escaped))
        if (own := self.scope.variables.get(name)) is not None:
            return own
        if (text := self.bindings.get(name)) is not None:
            return _replace(text, lambda each: self._value(each, known, is_escaped, depth + 1))
        return "" if self.scope.parent is None else self.scope.parent.value(name)


def _escaped(names: Iterable[str], is_escaped: bool) -> Iterator[str]:
    for name in names:
        if not is_escaped or _SAFE.fullmatch(name):
            yield name
        else:
            yield "'" + name.replace("'", "'\\''") + "'"


@dataclass(slots=True)
class Manifest:
    """All edges, the files that they were read from, and variables of the first file."""

    edges: list[Edge] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    scope: Scope = field(default_factory=Scope)
    n_characters: int = 0

    def add(self, edge: Edge, most: int) -> None:
        """Add an edge. EtraceError when all names have more than `most` characters."""
        self.n_characters += sum(map(len, edge.outputs + edge.implicit_outputs))
        self.n_characters += sum(map(len, edge.inputs + edge.implicit + edge.order_only))
        if self.n_characters > most:
            raise EtraceError(f"build.ninja: its names have more than {most} characters", HINT)
        self.edges.append(edge)


def read(directory: Path, name: str) -> Manifest:
    """Read a build.ninja and what it includes. EtraceError for an invalid one; OSError."""
    manifest = Manifest()
    manifest.scope.rules["phony"] = {}
    _Reader(directory, manifest).read(name, manifest.scope)
    return manifest


class _Reader:
    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self._directory, self._manifest, self._depth = directory, manifest, 0
        self._n_characters = 0

    def read(self, name: str, scope: Scope) -> None:
        """Read one file into a scope."""
        path = self._directory / name
        if self._depth > MAX_DEPTH:
            raise EtraceError(f"{path} includes itself", "ninja refuses it too")
        self._manifest.files.append(path)
        text = text_of_file(path, MAX_FILE_CHARACTERS)
        self._n_characters += len(text)
        if self._n_characters > MAX_FILE_CHARACTERS or len(self._manifest.files) > MAX_FILES:
            raise EtraceError(f"{path}: build.ninja includes too much", HINT)
        text = _JOINED.sub(lambda f: "" if f[0][:2] in ("$\n", "$\r") else f[0], text)
        lines = [line for line in text.split("\n") if not line.lstrip(" ").startswith("#")]
        at = 0
        while at < len(lines):
            line, at = lines[at].rstrip("\r"), at + 1
            if not line.strip():
                continue
            block = {}
            while at < len(lines) and lines[at].startswith(" ") and lines[at].strip():
                if not (found := _BINDING.fullmatch(lines[at].lstrip(" ").rstrip("\r"))):
                    raise EtraceError(f"{path}: a line that is not a variable", HINT)
                block[found[1]] = found[2]
                at += 1
            self._statement(path, line, block, scope)

    def _statement(self, path: Path, line: str, block: Mapping[str, str], scope: Scope) -> None:
        word, _, rest = line.partition(" ")
        if word == "build":
            most = max(LEAST_NAME_CHARACTERS, MAX_UNFOLDING * self._n_characters)
            self._manifest.add(_edge(path, rest, block, scope), most)
        elif word == "rule":
            scope.rules[rest.strip()] = block
        elif word in ("include", "subninja"):
            self._depth += 1
            name = scope.evaluate(rest.strip())
            self.read(name, scope if word == "include" else Scope(scope))
            self._depth -= 1
        elif word not in ("default", "pool"):
            if not (found := _BINDING.fullmatch(line)):
                raise EtraceError(f"{path}: a line that is not of build.ninja", HINT)
            scope.variables[found[1]] = scope.evaluate(found[2])


def _edge(path: Path, text: str, block: Mapping[str, str], scope: Scope) -> Edge:
    lists: dict[str, list[str]] = {"out": []}
    now, rule = "out", ""
    for word in _WORD.findall(text):
        if word == ":":
            now = "rule"
        elif word in ("|", "||", "|@"):
            now = f"out{word}" if "in" not in lists else word
        elif now == "rule":
            rule, now = word, "in"
            lists["in"] = []
        else:
            lists.setdefault(now, []).append(word)
    bindings = scope.rule(rule)
    if bindings is None:
        raise EtraceError(f"{path}: no rule {rule!r} for: build {text}", HINT)
    own = scope
    if block:
        values = {name: scope.evaluate(value) for name, value in block.items()}
        own = Scope(scope, values)

    def names(key: str) -> tuple[str, ...]:
        return tuple(normpath(own.evaluate(word)) for word in lists.get(key, ()))

    return Edge(
        rule, names("out"), names("out|"), names("in"), names("|"), names("||"), own, bindings
    )
