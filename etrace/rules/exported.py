# SPDX-License-Identifier: Apache-2.0
"""The variables that makes and shells hand on, for traces without `--env`.

A make has the environment of the make that started it, with what that one exports: GNU make's
manual, "Communicating Variables to a Sub-make". Which variables these are is in its makefiles, in
words; their values are what make prints of them (declared.py). A shell sets variables before the
name of a program.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from etrace.rules.dependency_files import text_of_file
from etrace.rules.line_texts import shell_command

#: of a makefile
MAX_BYTES = 64 << 20
UNKNOWN = "variables that it was handed are not known: etrace run --env keeps them"
GOAL = "etrace-exported"
_ALL_NAMES = "$(.VARIABLES)"
#: what make sets itself
_OWN = "SHELL CURDIR MAKE% MFLAGS GNUMAKEFLAGS etrace-%"
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
_DIRECTIVE = re.compile(r"^ *(?:override +)?(un)?export(?![\w:.-]|[ \t]*[:+?!]*[:=])(.*)$", re.M)
_ASSIGNED = re.compile(r"[ \t]*(?:define[ \t]+)?([^\s:+?!=#]+)[ \t]*(?:[:+?!]*=.*|$)")
_EVALUATED = re.compile(r"^[^\t#\n][^\n]*\beval\b[^\n]*\bexport\b", re.M)
_ALL = re.compile(r"^ *\.EXPORT_ALL_VARIABLES *:", re.M)
_SET = re.compile(r"^ *(?:override +)?(\w+)[ \t]*[:+?!]*=", re.M | re.A)
_PAIR = re.compile(r"([A-Za-z_]\w*)=(.*)", re.A | re.S)
_PRINTED = re.compile(rb"^etrace-exported ([A-Za-z_]\w*)=(.*?)^etrace-exported$", re.M | re.S)
#: words before a program, after which it still has the variables that are set before them
_BEFORE = frozenset(("env", "exec", "nice", "time", "command"))
#: after which a command begins, and what may set variables that are not seen
_NEXT = frozenset(("do", "then", "else", "if", "while", "!", "{"))
_UNCLEAR = frozenset((".", "source", "set", "eval"))
_MAKES = ("make", "gmake")


class Directives:
    """What makefiles export, by their text; each is read once."""

    def __init__(self) -> None:
        self._known: dict[str, _Makefile] = {}

    def printing(self, makefiles: Iterable[str], environment: Mapping[bytes, bytes]) -> str | None:
        """Return makefile text that prints what is exported; empty if nothing, None if unclear.

        A variable of the environment that they set again is exported, too.
        """
        names, hidden = list[str](), list[str]()
        for path in sorted(makefiles):
            if path not in self._known:
                self._known[path] = _read(Path(path))
            own = self._known[path]
            if own.is_unclear:
                return None
            names += own.names
            names += (name for name in own.set_names if name.encode() in environment)
            hidden += own.hidden
        if not names:
            return ""
        without = " ".join([_OWN, *(each for each in hidden if each != _ALL_NAMES)])
        return (
            f"etrace-names = {' '.join(dict.fromkeys(names))}\netrace-hidden = {without}\n{GOAL}:;@"
            "$(foreach etrace-name,$(sort $(filter-out $(etrace-hidden),$(etrace-names))),"
            "$(if $(filter file override,$(origin $(etrace-name))),"
            f"$(info {GOAL} $(etrace-name)=$($(etrace-name)))$(info {GOAL})))"
        )


@dataclass(frozen=True, slots=True)
class _Makefile:
    """What one makefile exports or not, in its own words, and the variables that it sets."""

    is_unclear: bool = False
    names: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    set_names: tuple[str, ...] = ()


def _read(path: Path) -> _Makefile:
    try:
        text = _CONTINUED.sub(" ", text_of_file(path, MAX_BYTES))
    except OSError:
        return _Makefile()
    lists: dict[str, list[str]] = {"": [_ALL_NAMES] if _ALL.search(text) else [], "un": []}
    for found in _DIRECTIVE.finditer(text):
        words = found[2].partition("#")[0].strip()
        name = _ASSIGNED.fullmatch(words)
        lists[found[1] or ""].append(name[1] if name else words or _ALL_NAMES)
    return _Makefile(
        bool(_EVALUATED.search(text)), tuple(lists[""]), tuple(lists["un"]),
        tuple(dict.fromkeys(_SET.findall(text))),
    )  # fmt: skip


def values(printed: bytes) -> dict[bytes, bytes]:
    """Return the variables in what a make printed for `directive`."""
    return {name: value.removesuffix(b"\n") for name, value in _PRINTED.findall(printed)}


def assigned(commands: Iterable[Sequence[str]]) -> dict[bytes, bytes] | None:
    """Return the variables that shells and `env` set for a make; None when that is not clear.

    `commands` are the arguments of the processes above it, the outermost last.
    """
    found: dict[bytes, bytes] = {}
    for argv in commands:
        if (command := shell_command(argv)) is not None:
            words = _words(command)
        elif argv and Path(argv[0]).name == "env":
            words = list(argv)
        else:
            continue
        own = None if words is None else _of_make(words)
        if own is None or any("$" in value or "`" in value for value in own.values()):
            return None
        found = {os.fsencode(name): os.fsencode(own[name]) for name in own} | found
    return found


def _words(command: str) -> list[str] | None:
    """Return the words and operators of a shell's command; None for quotes without an end."""
    text = command.replace("\\\n", "").replace("\n", " ; ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _of_make(words: Iterable[str]) -> dict[str, str] | None:
    """Return what the makes in a command are handed; None when a file may set variables, too."""
    found, exported, variables, own = (dict[str, str]() for _ in range(4))
    is_begin, is_export = True, False
    for word in words:
        pair = _PAIR.fullmatch(word)
        if word in _NEXT or not word.strip("();<>|&"):
            variables |= own if is_begin else {}
            own, is_begin, is_export = {}, True, False
        elif is_export:
            name = pair[1] if pair else word
            variables |= {name: pair[2]} if pair else {}
            exported |= {name: variables[name]} if name in variables else {}
        elif is_begin and pair:
            own[pair[1]] = pair[2]
        elif is_begin and word in _UNCLEAR:
            return None
        elif is_begin and word == "export":
            is_export = True
        elif Path(word).name in _MAKES:
            found |= exported | own
            is_begin = False
        elif word not in _BEFORE:
            own, is_begin = {}, False
    return found
