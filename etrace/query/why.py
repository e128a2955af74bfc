# SPDX-License-Identifier: Apache-2.0
"""Two files -> the chain of commands through which one depends on the other.

A chain of compilers, archivers, linkers and copies is preferred to one of any commands, and a chain
without pipes to one with pipes. Among equal chains the shortest wins.

Without a chain the answer is the reason: the rule that cuts all chains, or what else was made from
the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from libetrace.depend.configuration import Exclusions, Rules, exclusions_of
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.dependencies import Walked, walk
from etrace.query.files import BITS, READ
from etrace.query.rows.commands import incidental
from etrace.query.select.file_names import find_files, nearest_paths, split_rules
from etrace.query.select.link_names import targets

N_NEAREST = 5


class How(StrEnum):
    """The role of a command in a chain."""

    WROTE = "written"
    WROTE_TO_PIPE = "which was written"
    FORKED = "which was filled"


@dataclass(frozen=True, slots=True)
class Link:
    """One command: it made the previous element (a file, data in a pipe or in memory) from `read`.

    `execution` wrote and `reader` read: rows of `executions` of one process, mostly the same.
    `read` is a row of `paths`, None when it read a pipe or, with `is_forked`, has its parent's
    memory.
    """

    how: How
    execution: int
    reader: int
    read: int | None
    is_forked: bool = False


@dataclass(frozen=True, slots=True)
class Why:
    """A chain from `target` to `file` (rows of `paths`); without one, `reasons`.

    Without a chain there are also near paths: files `made` from `file`, or, when there are none,
    `similar` files that `target` depends on.
    """

    target: int
    file: int
    links: tuple[Link, ...]
    reasons: tuple[str, ...] = ()
    made: tuple[bytes, ...] = ()
    similar: tuple[bytes, ...] = ()
    n_readers: int = 0  #: executions that read `file`, when there is a chain

    @property
    def depends(self) -> bool:
        """Whether there is a chain."""
        return bool(self.links)


def why(dependencies: Dependencies, target: bytes, file: bytes, rules: Rules) -> Why:
    """Return how `target` depends on `file`; EtraceError for names that do not match one file."""
    goal = _single(dependencies, file)
    walked = walk(dependencies, [target], rules)
    if not any(goal in closure for closure in walked.closures):
        goal = list(targets(dependencies.image, [goal]))[-1]
    root = _single(dependencies, split_rules(target, rules)[0])
    if root == goal:
        raise EtraceError("a file does not depend on itself", "name two files")
    if any(goal in closure for closure in walked.closures):
        own = split_rules(target, rules)[1]
        links = tuple(_links(_best_chain(dependencies, root, goal, own)))
        return Why(root, goal, links, n_readers=_n_readers(dependencies.image, goal))
    reasons = tuple(_reasons(dependencies, root, goal, rules))
    made = _made(dependencies, root, goal)
    similar = () if made else _similar(dependencies, walked, goal)
    return Why(root, goal, (), reasons, made, similar)


def _n_readers(image: Image, path: int) -> int:
    """Return how many executions read a file."""
    opens, uses = image["opens"], image["path_opens"]["open"]
    rows = (uses[at] for at in image["paths"].span("opens.start", path))
    return len({opens["execution"][row] for row in rows if BITS[opens["mode"][row] & 3] & READ})


def _best_chain(
    dependencies: Dependencies, root: int, goal: int, rules: Rules
) -> Sequence[tuple[Any, ...]]:
    """Return the best chain; chains of producing commands come first."""
    left_out = exclusions_of(dependencies.config, dependencies.image.path_string(root))
    stages = (
        dependencies.chain(root, goal, own, left_out, without=without)
        for without in (incidental(dependencies.image), None)
        for own in (rules._replace(pipes=False), rules)
    )
    return next(filter(None, stages))


def _single(dependencies: Dependencies, name: bytes) -> int:
    rows = find_files(dependencies.image, [name])
    if len(rows) != 1:
        raise EtraceError(f"{os.fsdecode(name)} is {len(rows)} files", "name one")
    return rows[0]


def _links(chain: Sequence[tuple[Any, ...]]) -> Iterator[Link]:
    """Turn the steps of a walk into links, one for each process on the way."""
    how, maker = How.WROTE, -1
    for step in chain:
        match step:
            case ("enter", execution, _):
                how, maker = How.WROTE, execution
            case ("pipe", own, other):
                yield Link(how, maker, own, None)
                how, maker = How.WROTE_TO_PIPE, other
            case ("fork", own, other, _):
                yield Link(how, maker, own, None, is_forked=True)
                how, maker = How.FORKED, other
            case ("leave", execution, _, path):
                yield Link(how, maker, execution, path)


def _reasons(dependencies: Dependencies, root: int, goal: int, rules: Rules) -> Iterator[str]:
    graph = dependencies.graph(reverse=False, wrapped=False, programs=True)
    readers = dependencies.graph(reverse=True, wrapped=False, programs=True)
    if not graph.is_producible(root):
        yield "no traced command wrote the first file"
    if not readers.is_producible(goal):
        yield "no traced command read the second file"
    elif goal in dependencies.closure([root], _unlimited(rules, is_ordered=True), Exclusions()):
        yield "exclusions (patterns, configuration, --direct, pipes) cut every chain"
    elif goal in dependencies.closure([root], _unlimited(rules, is_ordered=False), Exclusions()):
        yield "in every chain of the trace a file was written after it was read (see --no-ordered)"


def _unlimited(rules: Rules, *, is_ordered: bool) -> Rules:
    return Rules(is_ordered=is_ordered, is_wrapped=rules.is_wrapped, all_programs=True, pipes=True)


def _made(dependencies: Dependencies, root: int, goal: int) -> tuple[bytes, ...]:
    """Return files made from the goal, those in the target's directory first."""
    image = dependencies.image
    made = dependencies.closure([goal], Rules(), Exclusions(), reverse=True).paths
    here = os.path.dirname(image.path_string(root))  # noqa: PTH120  bytes
    paths = [image.path_string(row) for row in made]
    paths.sort(key=lambda path: (os.path.dirname(path) != here, path))  # noqa: PTH120
    return tuple(paths[:N_NEAREST])


def _similar(dependencies: Dependencies, walked: Walked, goal: int) -> tuple[bytes, ...]:
    """Return inputs of the target whose names look like the goal's."""
    image = dependencies.image
    near = nearest_paths(map(image.path_string, walked.paths), image.path_string(goal))
    return tuple(map(os.fsencode, near))
