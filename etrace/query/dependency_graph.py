# SPDX-License-Identifier: Apache-2.0
"""Files -> who made them of what, step by step: a graph as JSON (the ancestor's form) or DOT."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from libetrace.image.file import Image

from etrace.query.dependencies import Uses
from etrace.query.deps import Walked


@dataclass(slots=True)
class Maker:
    """A process that wrote a file: what it read, and its executions on the way."""

    reads: set[int] = field(default_factory=set)
    executions: set[int] = field(default_factory=set)


@dataclass(slots=True)
class DependencyGraph:
    """`makers` by number of process, `made` of each file the processes that wrote it."""

    image: Image
    makers: dict[int, Maker] = field(default_factory=dict)
    made: dict[int, dict[int, int]] = field(default_factory=dict)  #: path -> process -> execution

    def add(self, walked: Walked) -> None:
        """Add what closures walked over."""
        for closure in walked.closures:
            uses, process_of = Uses(self.image, closure.graph), closure.graph.process_of_execution
            for row in closure.left:
                execution = uses.execution(row)
                maker = self.makers.setdefault(process_of(execution), Maker())
                maker.reads.add(uses.path(row))
                maker.executions.add(execution)
            for row in closure.entered:
                execution, path = uses.execution(row), uses.path(row)
                process = process_of(execution)
                self.makers.setdefault(process, Maker()).executions.add(execution)
                self.made.setdefault(path, {}).setdefault(process, execution)

    def _text(self, path: int) -> str:
        return os.fsdecode(self.image.path_string(path))

    def _commands(self, maker: Maker) -> list[str]:
        index = self.image["executions"]["index"]
        rows = sorted(maker.executions)
        return [self.command(row) for row in rows if index[row] > 0] or [
            self.command(row) for row in rows[:1]
        ]

    def command(self, execution: int) -> str:
        """Return the arguments of an execution joined by blanks."""
        arguments = self.image["arguments"]["string"]
        span = self.image["executions"].span("argv.start", execution)
        return os.fsdecode(b" ".join(self.image.string(arguments[i]) for i in span))

    def record(self) -> Mapping[str, object]:
        """Return `{"dep_graph": {file: [[[pid, [reads], [commands]], ...], [written]]}}`.

        `written` are those of the reads that the build wrote; everything is sorted.
        """
        upid = self.image["executions"]["upid"]
        graph = {}
        for path, by_process in sorted(self.made.items()):
            makers: list[list[object]] = []
            written: set[int] = set()
            for process, execution in sorted(by_process.items()):
                maker = self.makers[process]
                reads = sorted(maker.reads)
                written.update(read for read in reads if read in self.made)
                shown = [self._text(read) for read in reads]
                makers.append([upid[execution], shown, self._commands(maker)])
            graph[self._text(path)] = [makers, [self._text(p) for p in sorted(written)]]
        return {"dep_graph": graph}

    def dot(self, shows: Callable[[int], bool] | None = None) -> Iterator[str]:
        """Yield the lines of a graph for Graphviz: files are boxes, commands ellipses.

        Of files that nothing on the way made only those that `shows` holds for.
        """
        yield "digraph dependencies {"
        yield "  rankdir=RL;"
        files: set[int] = set(self.made)
        for process, maker in sorted(self.makers.items()):
            label = _quoted(self._commands(maker)[-1])
            if shows is not None:
                maker.reads = {p for p in maker.reads if p in self.made or shows(p)}
            yield f"  p{process} [label={label}, shape=ellipse];"
            files |= maker.reads
        for path in sorted(files):
            yield f"  f{path} [label={_quoted(self._text(path))}, shape=box];"
        for path, by_process in sorted(self.made.items()):
            for process in sorted(by_process):
                yield f"  f{path} -> p{process};"
        for process, maker in sorted(self.makers.items()):
            for path in sorted(maker.reads):
                yield f"  p{process} -> f{path};"
        yield "}"


def _quoted(text: str, limit: int = 80) -> str:
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    printable = "".join(c if c.isprintable() else "?" for c in shown)
    return json.dumps(printable, ensure_ascii=False)
