# SPDX-License-Identifier: Apache-2.0
"""Recipes that write into a directory which only another one makes.

A trace has no mkdir, so the arguments of programs say what was made (mkdir, `install -d`,
`cmake -E make_directory`). A line of a recipe that only makes a directory writes no target. It is
then for the directory, when that is a target, or else for those rules of which it may be a line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import normpath
from pathlib import Path

from etrace.check.faults import Faults
from etrace.check.kinds import MISSING_DIRECTORY
from etrace.check.project import above
from etrace.check.writers import Writers
from etrace.query.files import READ, WRITE
from etrace.rules.line_texts import literal_of
from etrace.rules.recipes import Recipe, Use
from etrace.rules.rule import Rules
from etrace.spec.builders import NINJA
from etrace.spec.database import NONE

#: what may make a directory where it is not there yet, in a line that a shell ran
_MAY_MAKE = re.compile(r"mkdir|install|make_directory|mkinstalldirs|makedirs", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Made:
    """A directory, and the execution that made it; with `is_sure`, it was not there before."""

    path: str
    row: int
    recipe: int
    start_ns: int
    is_sure: bool


def look(faults: Faults) -> None:
    """Look for directories that a writer does not wait for."""
    recipes = faults.recipes
    made: dict[str, list[Made]] = defaultdict(list)
    for each in _made(faults):
        made[each.path].append(each)
    # what no recipe made was made in a sequence, such as by configure
    made = {path: own for path, own in made.items() if all(each.recipe != NONE for each in own)}
    if not made:
        return
    foreign, candidates = _folders_of_before(faults), _Candidates(faults)
    makers: dict[str, _Makers] = {}
    sure = {folder for folder, own in made.items() if any(each.is_sure for each in own)}
    for path, uses in recipes.uses.items():
        folder = above(recipes.records.path(path))
        while folder not in made and len(folder) > 1:
            folder = above(folder)
        if folder not in made or not Path(folder).is_dir():
            continue
        if folder not in sure and foreign.have(folder):
            continue
        if folder not in makers:
            makers[folder] = _Makers(faults, folder, made[folder], candidates)
        for use in uses:
            if use.access & WRITE:
                _look_at(faults, folder, use, makers[folder])


class _Makers:
    """Those that made one directory, in order of time."""

    def __init__(
        self, faults: Faults, folder: str, made: Sequence[Made], candidates: _Candidates
    ) -> None:
        made = sorted(made, key=lambda each: each.start_ns)
        self.begins, self.made = [each.start_ns for each in made], made
        self.of_recipe = {each.recipe: each for each in reversed(made)}
        recipes, targets = faults.recipes.recipes, dict[int, frozenset[str]]()
        for number, each in self.of_recipe.items():
            rules = faults.rules_of(number)
            if not recipes[number].targets and rules is not None:
                targets[number] = candidates.of(each, rules)
        uses = (Use(each.recipe, WRITE, each.start_ns, each.start_ns, each.row) for each in made)
        self.writers = Writers(faults.recipes, faults.rules, folder, uses, targets)

    def before(self, use: Use) -> Iterator[Made]:
        """Yield those that a use may wait for, then the last one, before it in time."""
        if n_before := bisect_left(self.begins, use.begin_ns):
            for each in self.writers.that_matter(use.recipe):
                if each.begin_ns < use.begin_ns:
                    yield self.of_recipe[each.recipe]
            yield self.made[n_before - 1]


def _look_at(faults: Faults, folder: str, use: Use, makers: _Makers) -> None:
    recipes = faults.recipes
    last = None
    for maker in makers.before(use):
        met = recipes.meet(use.recipe, maker.recipe)
        if met is None:  # in the same recipe, or in a sequence
            return
        reader, other = (recipes.recipes[number] for number in met)
        rules = faults.rules.get(reader.make)
        if rules is None or rules.is_serial or not reader.targets:
            return
        if rules.tool == NINJA and any(path.startswith(folder + "/") for path in reader.targets):
            return  # ninja makes the directories of outputs
        targets = makers.writers.targets(met[1])
        if not targets or _waits(folder, reader, targets, rules):
            return
        if not faults.is_asked_for(targets & {folder} or targets, other.make, rules):
            return
        last = reader, replace(other, targets=targets), maker
    if last is not None:
        reader, other, maker = last
        if not _may_make_itself(faults, use, reader, maker):
            faults.add(MISSING_DIRECTORY, folder, reader, other, use, maker.row)


def _waits(folder: str, reader: Recipe, targets: frozenset[str], rules: Rules) -> bool:
    if not rules.before_all.isdisjoint(targets):
        return True
    return any(
        rules.needs(reader.targets, wanted, order_only=True) for wanted in (targets, [folder])
    )


def _may_make_itself(faults: Faults, use: Use, reader: Recipe, maker: Made) -> bool:
    """Whether a recipe would make the directory if it were not there."""
    recipes, rules = faults.recipes, faults.rules[reader.make]
    for target in reader.targets:
        rule = rules.by_path.get(target)
        lines = [] if rule is None else rule.recipe
        # what a variable alone stands for is not known
        if any(_MAY_MAKE.search(line) or not literal_of(line) for line in lines):
            return True
    row = use.execution
    while row != NONE and recipes.of_row[row] == use.recipe:
        if any(_MAY_MAKE.search(word) for word in recipes.records.argv(row)):
            return True
        row = recipes.above(row)
    # a script that makes it where it is not there, such as libtool
    scripts = set(_scripts(faults, maker.row, maker.recipe))
    return bool(scripts) and any(
        script in scripts for row in recipes.rows[use.recipe] for script in _script(faults, row)
    )


def _scripts(faults: Faults, row: int, recipe: int) -> Iterator[tuple[int, str]]:
    """Yield what runs above an execution in its recipe."""
    row = faults.recipes.above(row)
    while row != NONE and faults.recipes.of_row[row] == recipe:
        yield from _script(faults, row)
        row = faults.recipes.above(row)


def _script(faults: Faults, row: int) -> Iterator[tuple[int, str]]:
    """Yield the program and first word of an execution, unless it is a line of a recipe."""
    words = faults.recipes.records.argv(row)
    if len(words) > 1 and not words[1].startswith("-") and not faults.recipes.is_make(row):
        yield int(faults.recipes.image["executions"]["binary"][row]), words[1]


class _Candidates:
    """The targets that a command can be a line of."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        #: by make, command and its directory, if that is a target
        self._known: dict[tuple[int, str, str], frozenset[str]] = {}

    def of(self, maker: Made, rules: Rules) -> frozenset[str]:
        """Return the targets that a maker of a directory may be for; none when none is known."""
        is_made = rules.is_target(maker.path) and rules.by_path[maker.path].has_recipe
        own = maker.path if is_made else ""
        recipes = self._faults.recipes
        text = recipes.command(recipes.recipes[maker.recipe])
        key = id(rules), text, own
        if key not in self._known:
            found = recipes.lines(rules).with_command(text)
            self._known[key] = found | {own} if own else found
        return self._known[key]


def _made(faults: Faults) -> Iterator[Made]:
    """Yield the directories that arguments name, in order of time."""
    recipes, image = faults.recipes, faults.recipes.image
    table = image["executions"]
    names = {
        path: image.path_string(path).rpartition(b"/")[2].decode(errors="replace")
        for path in set(table["binary"].tolist()) - {NONE}
    }
    tools = {path for path, name in names.items() if name in ("mkdir", "install", "cmake")}
    for row, binary in enumerate(table["binary"].tolist()):
        if binary not in tools:
            continue
        words = recipes.records.argv(row)
        folders, with_parents = _named(names[binary], words)
        is_sure = names[binary] == "mkdir" and not with_parents and not table["status"][row]
        start = recipes.began_ns(row)
        own = recipes.records.directory(row)  # which is there, and so is what is above it
        for name in folders:
            path = normpath(str(Path(own) / name))
            while not f"{own}/".startswith(f"{path.rstrip('/')}/") and faults.is_below(
                path, faults.rules_of(recipes.of_row[row])
            ):
                yield Made(path, row, recipes.of_row[row], start, is_sure)
                if not with_parents:
                    break
                path = above(path)


def _named(program: str, words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the directories that a command makes, and whether those above them too."""
    if program == "cmake":
        is_made = list(words[1:3]) == ["-E", "make_directory"]
        return (list(words[3:]) if is_made else []), True
    names, options, is_value = list[str](), "", False
    for word in words[1:]:
        if is_value:
            is_value = False
        elif word.startswith("--"):
            options += {"--parents": "p", "--directory": "d"}.get(word, "")
        elif word.startswith("-") and len(word) > 1:
            options += word[1:] if word[1] not in "mgotS" else ""
            is_value = word[-1] in "mgotS" and word in ("-m", "-g", "-o", "-t", "-S")
        else:
            names.append(word)
    if program == "install":
        return (names if "d" in options else []), True
    return names, "p" in options


def _folders_of_before(faults: Faults) -> _Folders:
    recipes, found = faults.recipes, set[str]()
    written = set[str]()
    for path, uses in recipes.uses.items():
        text = recipes.records.path(path)
        if any(use.access & WRITE for use in uses):
            written.add(text)
        elif any(use.access & READ for use in uses):
            found.add(above(text))
    return _Folders(found, written)


class _Folders:
    """Directories with a file that no command of the build wrote: they were there before."""

    def __init__(self, read: set[str], written: set[str]) -> None:
        self._written = written
        self._known = dict.fromkeys(read, True)

    def have(self, folder: str) -> bool:
        """Whether a directory is one of them."""
        if folder not in self._known:
            self._known[folder] = any(
                str(each) not in self._written and not each.is_dir()
                for each in Path(folder).iterdir()
            )
        return self._known[folder]
