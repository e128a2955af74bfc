# SPDX-License-Identifier: Apache-2.0
"""Commands that failed before another recipe wrote, or could write, a file that they were after.

A trace has no opens that failed. So the files that a failed command was after are those that its
arguments name, the libraries that it was linked with (`-l`), and of a compiler what the sources
that it read include. A fault is one of these that another recipe wrote later as its target, or that
has a rule and was not made before the build ended, where nothing makes the command wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from os.path import lexists, normpath
from pathlib import Path

from etrace.check.faults import Faults
from etrace.check.kinds import MISSING_ORDER
from etrace.query.files import READ, WRITE
from etrace.query.rows.file_kinds import is_of_system
from etrace.rules.dependency_files import data_of_file
from etrace.rules.line_texts import is_shell
from etrace.rules.recipes import Recipes, Use
from etrace.spec.database import NONE
from etrace.spec.suffixes import kind_of

#: of a source that is read for its includes
MAX_BYTES = 4 << 20
#: of an argument
MAX_CHARACTERS = 1 << 20
#: least status of a shell that did not find a file (dash: 2) or a program (127)
N_OF_SHELL = 2
#: programs that fail without being wrong, or where a file need not be there
_MAY_FAIL = frozenset((
    "rm", "rmdir", "unlink", "test", "[", "mkdir", "cmp", "diff", "grep", "egrep", "fgrep",
    "which", "ls", "ln", "find",
))  # fmt: skip
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_BETWEEN_WORDS = re.compile(r"[\s'\"=;,()&|<>`:]+")
_FOLDER = re.compile(r"-(?:I|L|iquote|isystem|idirafter)(.*)", re.DOTALL)


def look(faults: Faults) -> None:
    """Look for files that a failed command did not find."""
    recipes = faults.recipes
    written = _written(faults)
    status = recipes.image["executions"]["status"]
    failed = [row for row, code in enumerate(status.tolist()) if code > 0]
    programs = {row for row in failed if not is_shell(recipes.records.argv(row))}
    has_program = {recipes.of_row[row] for row in programs}
    includes: dict[str, list[str]] = {}
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
        use = Use(number, READ, began, began, row)
        folders = [*_folders(faults, row, words)]
        named = [*_named(faults, row, words, folders)]
        included = [*_included(faults, row, folders, includes)]
        sought = {
            text: by for text in chain.from_iterable(named)
            if (by := written.get(text)) and faults.is_target(text, by)
        }  # fmt: skip
        for paths in included:
            text = next(filter(lexists, paths), "")
            if by := written.get(text):
                sought[text] = by
        for text, by in sought.items():
            if by.begin_ns > began and text not in recipes.recipes[number].targets:
                faults.look_at_early(text, use, by)
        if _fails(recipes, number):
            for paths in (*named, *included):
                if not any(text in written or lexists(text) for text in paths):
                    _look_at_unmade(faults, paths, use)


def _fails(recipes: Recipes, number: int) -> bool:
    """Whether make or ninja saw the command of a recipe fail."""
    last = recipes.process(recipes.recipes[number].row)[-1]
    return bool(recipes.image["executions"]["status"][last] > 0)


def _look_at_unmade(faults: Faults, paths: Sequence[str], use: Use) -> None:
    """Look for a file that is not there, and is a target that the command does not wait for."""
    for number in faults.recipes.chain(use.recipe):
        recipe = faults.recipes.recipes[number]
        if (rules := faults.rules.get(recipe.make)) is None:
            return
        for text in paths:
            rule = rules.by_path.get(text)
            if rule is None or not rule.is_target or rule.is_phony or text in rules.makefiles:
                continue
            if not rule.has_recipe and not rule.needs:  # as for dependency files: `$(DEPFILES):`
                continue
            if recipe.targets and not rules.needs(recipe.possible, [text], order_only=True):
                faults.add(MISSING_ORDER, text, recipe, None, use, NONE)
            return


def _written(faults: Faults) -> Mapping[str, Use]:
    """Return the first use of a writer of each file that recipes wrote."""
    recipes = faults.recipes
    return {
        recipes.records.path(path): next(use for use in uses if use.access & WRITE)
        for path, uses in recipes.uses.items()
        if any(use.access & WRITE for use in uses)
    }


def _folders(faults: Faults, row: int, words: Sequence[str]) -> Iterator[str]:
    """Yield the directories in which a compiler or linker was to look for files."""
    directory = faults.recipes.records.directory(row)
    for at, word in enumerate(words):
        if found := _FOLDER.fullmatch(word):
            name = found[1] or "".join(words[at + 1 : at + 2])
            yield normpath(f"{directory}/{name}" if name[:1] != "/" else name)


def _named(
    faults: Faults, row: int, words: Sequence[str], folders: Sequence[str]
) -> Iterator[Sequence[str]]:
    """Yield the paths that each of the arguments may mean."""
    directory = faults.recipes.records.directory(row)
    for word in words[1:]:
        if word.startswith("-l") and len(word) > len("-l"):
            names = (f"lib{word[2:]}.so", f"lib{word[2:]}.a")
            yield [f"{folder}/{name}" for name in names for folder in folders]
        for token in _BETWEEN_WORDS.split(word[:MAX_CHARACTERS]):
            if token:
                yield [normpath(f"{directory}/{token}" if token[0] != "/" else token)]


def _included(
    faults: Faults, row: int, folders: Sequence[str], known: dict[str, list[str]]
) -> Iterator[Sequence[str]]:
    """Yield where each file may be that what an execution read includes; `known` keeps names."""
    image = faults.recipes.image
    for at in image["executions"].span("opens.start", row):
        path = image["opens"]["path"][at]
        source = faults.recipes.records.path(path)
        if is_of_system(image.path_string(path)):
            continue
        if kind_of(source.rpartition("/")[2]) not in ("source", "header"):
            continue
        if source not in known:
            known[source] = [*_names_in(source)]
        for name in known[source]:
            yield [normpath(f"{each}/{name}") for each in (str(Path(source).parent), *folders)]


def _names_in(source: str) -> Iterator[str]:
    """Yield the names in the #include lines of a file."""
    try:
        text = data_of_file(Path(source), MAX_BYTES)
    except OSError:
        return
    for name in _INCLUDE.findall(text):
        if b"\0" not in name:
            yield name.decode("utf-8", "surrogateescape")
