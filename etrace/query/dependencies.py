# SPDX-License-Identifier: Apache-2.0
"""Files -> their dependencies, and what depends on them (docs/dependencies.md)."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.graph import Closure
from libetrace.image.file import Image

from etrace.errors import NothingFoundError
from etrace.query.linked_modules import find_copies
from etrace.query.rows.commands import NearestCommands
from etrace.query.rows.path_names import Names
from etrace.query.select.file_names import find_files, group_by_rules
from etrace.spec.database import NONE

if TYPE_CHECKING:
    from libetrace.depend.makers import Maker, Makers


class Walked(NamedTuple):
    """The closures of some files; `roots` are the rows of these files in `paths`."""

    image: Image
    roots: tuple[int, ...]
    closures: tuple[Closure, ...]

    @property
    def paths(self) -> array[int]:
        """The files of the closures without the roots: sorted rows of `paths`."""
        return join(self.closures, self.roots)

    @property
    def executions(self) -> list[int]:
        """Executions on the way: sorted rows of `executions`."""
        return sorted({row for closure in self.closures for row in closure.executions})

    @property
    def commands(self) -> list[int]:
        """Commands on the way: sorted rows of `executions` that have a program.

        An execution without a program (a thread or fork) is replaced by its nearest command.
        """
        executions = self.image["executions"]
        nearest = NearestCommands(executions["binary"], executions["parent"])
        found = set(map(nearest.of, self.executions))
        return sorted(found - {NONE})

    def use_of(self, path: int) -> int:
        """Return the row through which a path was found, -1 when it was not."""
        return max(closure.use_of(path) for closure in self.closures)


def walk(
    dependencies: Dependencies,
    names: Iterable[bytes],
    rules: Rules,
    *,
    is_exact: bool = True,
    reverse: bool = False,
) -> Walked:
    """Resolve names and walk from these files, each by its own rules if the name has any."""
    roots: dict[int, None] = {}
    closures: list[Closure] = []
    for own, some in group_by_rules(names, rules).items():
        rows = find_files(dependencies.image, some, is_exact=is_exact)
        roots |= dict.fromkeys(rows)
        closures += dependencies.closures(rows, own, reverse=reverse)
    return Walked(dependencies.image, tuple(roots), tuple(closures))


def deps(dependencies: Dependencies, names: Iterable[bytes], rules: Rules) -> Sequence[bytes]:
    """Return the paths that some files depend on, sorted as bytes."""
    image = dependencies.image
    return [image.path_string(row) for row in walk(dependencies, names, rules).paths]


def rdeps(
    dependencies: Dependencies,
    names: Iterable[bytes],
    rules: Rules,
    *,
    is_exact: bool = True,
    all_files: bool = False,
    with_copies: bool = False,
) -> list[int]:
    """Return sorted rows of `paths`: what depends on any of the files.

    Linked modules only unless `all_files`, and copies of them; Error before `cas pp`. A file does
    not depend on itself, but may on another of them.
    """
    wanted = None if all_files else _modules(dependencies, with_copies=with_copies)
    found: set[int] = set()
    for name in names:
        for own, some in group_by_rules([name], rules).items():
            roots = find_files(dependencies.image, some, is_exact=is_exact, follows=True)
            found |= dependencies.made_of(roots, own, wanted)
    return sorted(found)


def _modules(dependencies: Dependencies, *, with_copies: bool) -> set[int]:
    modules = {path for path, is_module in enumerate(dependencies.modules) if is_module}
    return modules | find_copies(dependencies.image).keys() if with_copies else modules


def moddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`: modules that the files need; EtraceError before `cas pp`.

    A file is not its own dependency, but it may be one of another file.
    """
    modules = dependencies.modules
    found: set[int] = set()
    for name in names:
        walked = walk(dependencies, [name], rules, is_exact=is_exact)
        found |= {path for path in walked.paths if modules[path]}
    return sorted(found)


def revmoddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`; EtraceError for a file that is not a linked module.

    A symbolic link stands for the module that it leads to.
    """
    modules = {path for path, is_module in enumerate(dependencies.modules) if is_module}
    links = Names(dependencies.image)
    found: set[int] = set()
    for name in names:
        for own, some in group_by_rules([name], rules).items():
            rows = find_files(dependencies.image, some, is_exact=is_exact)
            roots = [links.target(row) for row in rows]
            if is_exact:
                _check(dependencies, rows, roots)
            found |= dependencies.made_of(roots, own, modules)
    return sorted(found)


def _check(dependencies: Dependencies, rows: Sequence[int], roots: Sequence[int]) -> None:
    for row, root in zip(rows, roots, strict=True):
        if not dependencies.modules[root]:
            path = os.fsdecode(dependencies.image.path_string(row))
            raise NothingFoundError(
                f"{path} is not a linked module", f"cas rdeps {path} takes any file"
            )


def _command(image: Image, execution: int) -> str:
    """Return the arguments of an execution joined by spaces."""
    arguments = image["arguments"]["string"]
    span = image["executions"].span("argv.start", execution)
    return os.fsdecode(b" ".join(image.string(arguments[i]) for i in span))


def _commands(image: Image, maker: Maker) -> list[str]:
    index = image["executions"]["index"]
    rows = sorted(maker.executions)
    return [_command(image, row) for row in rows if index[row] > 0] or [
        _command(image, row) for row in rows[:1]
    ]


def record(makers: Makers) -> Mapping[str, object]:
    """Return `{"dep_graph": {file: [[[pid, [reads], [commands]], ...], [written]]}}`.

    `written` are those of the reads that the build wrote; everything is sorted.
    """
    image, upid = makers.image, makers.image["executions"]["upid"]
    graph = {}
    for step in makers.steps():
        own = [
            [
                upid[execution],
                [makers.text(p) for p in sorted(maker.reads)],
                _commands(image, maker),
            ]
            for execution, maker in step.makers
        ]
        graph[makers.text(step.path)] = [own, [makers.text(path) for path in step.written]]
    return {"dep_graph": graph}


def dot(makers: Makers, shows: Callable[[int], bool] | None = None) -> Iterator[str]:
    """Yield the lines of a graph for Graphviz: files are boxes, commands ellipses.

    Files that no command made are shown only if `shows` holds.
    """
    yield "digraph dependencies {"
    yield "  rankdir=RL;"
    files: set[int] = set(makers.made)
    reads: dict[int, list[int]] = {}
    for process, maker in sorted(makers.by_process.items()):
        shown = (p for p in maker.reads if shows is None or p in makers.made or shows(p))
        reads[process] = sorted(shown)
        files.update(reads[process])
        label = _quoted(_commands(makers.image, maker)[-1])
        yield f"  p{process} [label={label}, shape=ellipse];"
    for path in sorted(files):
        yield f"  f{path} [label={_quoted(makers.text(path))}, shape=box];"
    for path, by_process in sorted(makers.made.items()):
        for process in sorted(by_process):
            yield f"  f{path} -> p{process};"
    for process, paths in reads.items():
        for path in paths:
            yield f"  p{process} -> f{path};"
    yield "}"


def _quoted(text: str, limit: int = 80) -> str:
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    printable = "".join(c if c.isprintable() else "?" for c in shown)
    return json.dumps(printable, ensure_ascii=False)
