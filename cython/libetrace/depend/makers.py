# SPDX-License-Identifier: Apache-2.0
"""Closures -> who made what of what, step by step: processes, what each read and wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from libetrace.depend.graph import Closure
from libetrace.image.file import Image

#: file -> ([(upid, [what it read]), ..], [those of them that the build wrote])
FileGraph = dict[str, tuple[list[tuple[int, list[str]]], list[str]]]


@dataclass(slots=True)
class Maker:
    """A process that wrote a file, the files that it read, and its executions on the way."""

    reads: set[int] = field(default_factory=set)
    executions: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Step:
    """A file, who wrote it (by one execution of each), and which of their reads the build wrote."""

    path: int
    makers: Sequence[tuple[int, Maker]]
    written: Sequence[int]


class Makers:
    """`by_process` by number of process, `made` of each file the processes that wrote it."""

    def __init__(self, image: Image, closures: Iterable[Closure]) -> None:
        self.image = image
        self.by_process: dict[int, Maker] = {}
        self.made: dict[int, dict[int, int]] = {}  #: path -> process -> execution
        self._executions: set[int] = set()
        self._opens: set[int] = set()
        for closure in closures:
            self._add(closure)

    def _add(self, closure: Closure) -> None:
        graph = closure.graph
        self._executions.update(closure.executions)
        rows = (graph.open_of(row) for row in (*closure.entered, *closure.left))
        self._opens.update(row for row in rows if row >= 0)
        for row in closure.left:
            path, execution = graph.use(row)
            process = graph.process_of_execution(execution)
            self._maker(process, execution).reads.add(path)
        for row in closure.entered:
            path, execution = graph.use(row)
            process = graph.process_of_execution(execution)
            self._maker(process, execution)
            self.made.setdefault(path, {}).setdefault(process, execution)

    def _maker(self, process: int, execution: int) -> Maker:
        """Return the maker of a process, which this execution is one of."""
        maker = self.by_process.setdefault(process, Maker())
        maker.executions.add(execution)
        return maker

    @property
    def upids(self) -> list[int]:
        """Processes on the way, ascending."""
        upid = self.image["executions"]["upid"]
        return sorted({upid[row] for row in self._executions})

    @property
    def opens(self) -> list[int]:
        """Rows of `opens` on the way, ascending."""
        return sorted(self._opens)

    def steps(self) -> Iterator[Step]:
        """Yield the step to each file that was written on the way, by path."""
        for path, by_process in sorted(self.made.items()):
            makers = [
                (execution, self.by_process[process])
                for process, execution in sorted(by_process.items())
            ]
            reads = {read for _, maker in makers for read in maker.reads}
            yield Step(path, makers, sorted(reads & self.made.keys()))

    def graph(self) -> FileGraph:
        """Return the steps by names, as `nfsdb.fdeps` gives them."""
        upid = self.image["executions"]["upid"]
        return {
            self.text(step.path): (
                [
                    (upid[execution], [self.text(path) for path in sorted(maker.reads)])
                    for execution, maker in step.makers
                ],
                [self.text(path) for path in step.written],
            )
            for step in self.steps()
        }

    def text(self, path: int) -> str:
        """Return the text of a row of `paths`."""
        return self.image.path_string(path).decode("utf-8", "surrogateescape")
