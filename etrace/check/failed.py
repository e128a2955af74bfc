# SPDX-License-Identifier: Apache-2.0
"""Commands that failed before another recipe wrote a file that they name or include.

A trace has no opens that failed. So the files that a failed command was after are those that its
arguments name, the libraries that it was linked with (`-l`), and of a compiler what the sources
that it read include. A fault is one of these that another recipe wrote later as its target, where
nothing makes the command wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from os.path import lexists, normpath
from pathlib import Path

from etrace.check.faults import Faults
from etrace.query.files import READ, WRITE
from etrace.rules.dependency_files import data_of_file
from etrace.rules.recipes import Use
from etrace.spec.database import NONE
from etrace.spec.suffixes import kind_of

#: of a source that is read for its includes
MAX_BYTES = 4 << 20
#: of an argument
MAX_CHARACTERS = 1 << 20
#: least status of a shell that did not find a file (dash: 2) or a program (127)
N_OF_SHELL = 2
#: programs that fail without being wrong, or where a file need not be there
_MAY_FAIL = frozenset(
    [
        "rm",
        "rmdir",
        "unlink",
        "test",
        "[",
        "mkdir",
        "cmp",
        "diff",
        "grep",
        "egrep",
        "fgrep",
        "which",
        "ls",
        "ln",
        "find",
    ]
)
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_BETWEEN_WORDS = re.compile(r"[\s'\"=;,()&|<>`:]+")
_FOLDER = re.compile(r"-(?:I|L|iquote|isystem|idirafter)(.*)", re.DOTALL)


def look(faults: Faults) -> None:
    """Look for files that a failed command did not find."""
    recipes = faults.recipes
    written = _written(faults)
    if not written:
        return
    status = recipes.image["executions"]["status"]
    failed = [row for row, code in enumerate(status.tolist()) if code > 0]
    programs = {row for row in failed if not _is_shell(recipes.records.argv(row))}
    has_program = {recipes.of_row[row] for row in programs}
    for row in failed:
        number = recipes.of_row[row]
        if number == NONE or recipes.is_make(row) or not recipes.recipes[number].targets:
            continue
        words = recipes.records.argv(row)
        if not words or words[0].rpartition("/")[2] in _MAY_FAIL:
            continue
        # of a shell, what it ran says more, and `test` of its own fails with 1
        if row not in programs and (number in has_program or status[row] < N_OF_SHELL):
            continue
        began = recipes.began_ns(row)
        for text in dict.fromkeys(_sought(faults, row, words)):
            by = written.get(text)
            if by is None or by.begin_ns <= began or text in recipes.recipes[number].targets:
                continue
            faults.look_at_early(text, Use(number, READ, began, began, row), by)


def _is_shell(words: Sequence[str]) -> bool:
    return bool(words) and words[0].endswith("sh")


def _written(faults: Faults) -> Mapping[str, Use]:
    """Return the first writer of each file that recipes wrote, none of which was there before."""
    recipes = faults.recipes
    return {
        recipes.records.path(path): next(use for use in uses if use.access & WRITE)
        for path, uses in recipes.uses.items()
        if any(use.access & WRITE for use in uses)
    }


def _sought(faults: Faults, row: int, words: Sequence[str]) -> Iterator[str]:
    """Yield the paths that an execution may have looked for."""
    directory = faults.recipes.records.directory(row)
    folders = list[str]()
    for at, word in enumerate(words):
        if found := _FOLDER.fullmatch(word):
            name = found[1] or "".join(words[at + 1 : at + 2])
            folders.append(normpath(f"{directory}/{name}" if name[:1] != "/" else name))
    for word in words[1:]:
        if word.startswith("-l") and len(word) > len("-l"):
            for name in (f"lib{word[2:]}.so", f"lib{word[2:]}.a"):
                yield from (f"{folder}/{name}" for folder in folders)
        for token in _BETWEEN_WORDS.split(word[:MAX_CHARACTERS]):
            if token:
                yield normpath(f"{directory}/{token}" if token[0] != "/" else token)
    for source in _sources(faults, row):
        for name in _included(source):
            beside = str(Path(source).parent)
            paths = (normpath(f"{folder}/{name}") for folder in (beside, *folders))
            if found_path := next(filter(lexists, paths), ""):
                yield found_path


def _sources(faults: Faults, row: int) -> Iterator[str]:
    """Yield the sources and headers that an execution read."""
    image = faults.recipes.image
    for at in image["executions"].span("opens.start", row):
        path = faults.recipes.records.path(image["opens"]["path"][at])
        if kind_of(path.rpartition("/")[2]) in ("source", "header"):
            yield path


def _included(source: str) -> Iterator[str]:
    """Yield the names in the #include lines of a file."""
    try:
        text = data_of_file(Path(source), MAX_BYTES)
    except OSError:
        return
    for name in _INCLUDE.findall(text):
        if b"\0" not in name:
            yield name.decode("utf-8", "surrogateescape")
