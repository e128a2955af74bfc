# SPDX-License-Identifier: Apache-2.0
"""Files -> what they were made of, in the shape of the ancestor's library: `nfsdb.fdeps`.

libetrace.depend.graph walks; docs/dependencies.md says what a dependency is.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from libetrace.core.errors import Error, NotFoundError
from libetrace.core.texts import PathText, list_paths
from libetrace.depend.graph import Closure, Graph, GraphError
from libetrace.image.file import Image
from libetrace.select.commands import match_rows
from libetrace.select.patterns import PatternSet

#: path -> the processes that wrote it, as (upid, paths that it read), and the paths it was made of
DependencyGraph: TypeAlias = dict[str, tuple[list[tuple[int, list[str]]], list[str]]]
Texts = Iterable[str | bytes]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Where a walk stops: paths that are listed and not followed, executions without effect.

    `numbers` are those of precomputed command patterns (`nfsdb.pcp_list()`).
    """

    files: tuple[bytes, ...] = ()
    patterns: tuple[bytes, ...] = ()
    commands: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()
    negate: bool = False

    def stops(self, image: Image) -> bytearray | None:
        """Return a byte for each path, 1 where the walk stops; None when nothing is excluded."""
        if not self.files and not self.patterns:
            return None
        paths = image["paths"]
        mask = bytearray(paths.n_rows)
        if self.patterns:
            each = array("Q", range(paths.n_rows + 1))
            hits = _match(image, self.patterns, each, paths["string"])
            mask = bytearray(hit != self.negate for hit in hits)
        for path in self.files:
            row = image.find_path(path)
            if row >= 0:
                mask[row] = 1
        return mask

    def excluded(self, image: Image) -> bytearray | None:
        """Return a byte for each execution, 1 where it is left out; None when none is.

        Index 0 shows its parent's command: it is judged by the command that follows it.
        """
        if not self.commands and not self.numbers:
            return None
        executions = image["executions"]
        mask = bytearray(executions.n_rows)
        if self.commands:
            start, arguments = executions["argv.start"], image["arguments"]["string"]
            hits = _match(image, self.commands, start, arguments)
            mask = bytearray(hit != self.negate for hit in hits)
        for number in self.numbers:
            _add_precomputed(image, number, mask, self.negate)
        _judge_by_what_follows(image, mask)
        return mask


def _match(image: Image, patterns: Sequence[bytes], start: object, rows: object) -> list[bool]:
    """Return for each row whether a pattern matches it."""
    known = PatternSet(list(patterns))
    bits = match_rows(image, known, start, rows)
    size = known.row_bytes
    return [any(bits[i : i + size]) for i in range(0, len(bits), size)]


def _add_precomputed(image: Image, number: int, mask: bytearray, negate: bool) -> None:
    has_bits = {"patterns", "pattern_bits"} <= image.tables.keys()
    n_patterns = image["patterns"].n_rows if has_bits else 0
    if not 0 <= number < n_patterns:
        raise Error(f"no precomputed command pattern {number} of {n_patterns}", "see pcp_list()")
    size = -(-n_patterns // 8)
    bits = image["pattern_bits"]["bits"]
    for row in range(len(mask)):
        hit = bool(bits[row * size + number // 8] & 0x80 >> number % 8)
        mask[row] |= hit != negate


def _judge_by_what_follows(image: Image, mask: bytearray) -> None:
    upid, index = image["executions"]["upid"], image["executions"]["index"]
    for row in range(len(mask)):
        if index[row] == 0:
            follows = row + 1 < len(mask) and upid[row + 1] == upid[row]
            mask[row] = mask[row + 1] if follows else 0


def make_graph(image: Image, wrapped: bool) -> Graph:
    """Return the graph of who wrote and read what; `libetrace.error` for a damaged image."""
    if wrapped and "wrappers" not in image.tables:
        raise Error(f"{image.path} holds no wrappers yet", "make them: cas pp")
    try:
        return Graph(image, wrapped=wrapped)
    except GraphError as error:
        raise Error(f"{image.path}: damaged: {error}", "make it again: cas cache") from error


def module_mask(image: Image, modules: Iterable[PathText] | Literal["linked"]) -> bytearray:
    """Return a byte for each path, 1 for modules: those named, or all that were linked."""
    mask = bytearray(image["paths"].n_rows)
    if modules == "linked":
        rows = list(image["linked"]["path"]) if "linked" in image.tables else []
    else:
        rows = [image.find_path(path) for path in list_paths(modules)]
    for row in rows:
        if 0 <= row < len(mask):
            mask[row] = 1
    return mask


def find_roots(
    graph: Graph, image: Image, names: Iterable[bytes], stops: bytearray | None
) -> list[int]:
    """Return the rows of the named paths that something wrote and that are not excluded."""
    rows = []
    for name in names:
        row = image.find_path(name)
        if row < 0:
            shown = name.decode("utf-8", "surrogateescape")
            raise NotFoundError(f"{shown!r} was never opened")
        if graph.is_producible(row) and not (stops and stops[row]):
            rows.append(row)
    return list(dict.fromkeys(rows))


@dataclass(frozen=True, slots=True)
class Uses:
    """Rows of uses -> rows of paths and executions: opens, inherited files, programs, links."""

    image: Image
    graph: Graph

    def locate(self, row: int) -> tuple[int, int]:
        """Return (path, execution) of a use."""
        if row < self.graph.n_opens:
            opens = self.image["opens"]
            return opens["path"][row], opens["execution"][row]
        row -= self.graph.n_opens
        if row < self.graph.n_inherited:
            table = self.image["inherited"]
            return table["path"][row], table["execution"][row]
        row -= self.graph.n_inherited
        if row < self.graph.n_executions:
            return self.image["executions"]["binary"][row], row
        path, execution, target = self.graph.links[(row - self.graph.n_executions) // 2]
        return target if (row - self.graph.n_executions) % 2 else path, execution


def describe(image: Image, closure: Closure) -> DependencyGraph:
    """Return {file: ([(pid, [paths it read]), ..], [those of them that something wrote])}."""
    graph = closure.graph
    uses = Uses(image, graph)
    reads: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for row in closure.left:
        path, execution = uses.locate(row)
        reads[graph.process_of_execution(execution)][path] = None
    writers: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in closure.entered:
        path, execution = uses.locate(row)
        writers[path].setdefault(graph.process_of_execution(execution), execution)
    return {
        _text(image, path): (
            [
                (image["executions"]["upid"][execution], [_text(image, p) for p in reads[process]])
                for process, execution in own.items()
            ],
            [
                _text(image, p)
                for p in dict.fromkeys(p for process in own for p in reads[process])
                if graph.is_producible(p)
            ],
        )
        for path, own in writers.items()
    }


def _text(image: Image, path: int) -> str:
    return image.path_string(path).decode("utf-8", "surrogateescape")


def list_upids(image: Image, closure: Closure) -> list[int]:
    """Return the upids of the processes that a walk went through, ascending."""
    upid = image["executions"]["upid"]
    return sorted({upid[row] for row in closure.executions})


def list_opens(closure: Closure) -> list[int]:
    """Return the rows of `opens` that a walk went through, ascending."""
    return sorted({row for row in (*closure.entered, *closure.left) if row < closure.graph.n_opens})
