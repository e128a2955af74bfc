# SPDX-License-Identifier: Apache-2.0
"""Executions -> steps: a command that makes files, with what it started to make them.

A compiler, linker, archiver or launcher is one step with all that it starts (`ccache gcc`, `gcc`,
`cc1`, `as`). Any other program is a step with the other programs of its process alone: what a shell
or make starts are steps of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from libetrace.image.file import Image

from etrace.compilers.tools import Tool, load
from etrace.query.rows.commands import Commands
from etrace.spec.database import ACCESS, NONE

#: an option of compilers that only preprocess
PREPROCESS = b"-E"


@dataclass(slots=True, eq=False)
class Step:
    """`head` and `rows` are rows of `executions`, the others rows of `paths`."""

    head: int
    tool: Tool | None
    rows: list[int] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    sources: dict[int, None] = field(default_factory=dict)  #: heads that wrote to pipes it read
    end_ns: int = 0

    @property
    def is_launched(self) -> bool:
        """Whether a launcher such as ccache is its head."""
        return self.tool is not None and self.tool.kind == "launcher"


class Steps:
    """The steps of one image, by head and by the files that they wrote."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._commands, self._tools = Commands(image), load()
        self.tools = {row: self._identify(row) for row in self._commands.rows}
        self.by_head: dict[int, Step] = {}
        self._heads = self._find_heads()
        self._collect()
        self.makers: dict[int, list[Step]] = defaultdict(list)
        for step in sorted(self.by_head.values(), key=lambda step: step.end_ns):
            for path in step.writes:
                self.makers[path].append(step)

    def _identify(self, row: int) -> Tool | None:
        binary = self.image["executions"]["binary"][row]
        if binary == NONE:
            return None
        argv, text = self._commands.argv(row), self.image.string
        argv0 = text(argv[0]) if argv else b""
        return self._tools.tool_of(
            self.image.path_string(binary), argv0, lambda: list(map(text, argv))
        )

    def _find_heads(self) -> dict[int, int]:
        """Return the head of each command."""
        commands, upid = self._commands, self.image["executions"]["upid"]
        heads: dict[int, int] = {}
        last: dict[int, int] = {}  # of each process
        for number, row in enumerate(commands.rows):
            before = last.get(upid[row])
            above = commands.parent(number)
            head = row
            if before is not None:
                if self.tools[heads[before]] is not None or self.tools[row] is None:
                    head = heads[before]
            elif above != NONE:
                upper = heads.get(commands.rows[above])
                if upper is not None and self.tools[upper] is not None:
                    head = upper
            heads[row] = head
            last[upid[row]] = row
        return heads

    def _head(self, execution: int) -> int:
        number = self._commands.of(execution)
        return NONE if number == NONE else self._heads[self._commands.rows[number]]

    def _collect(self) -> None:
        image, executions = self.image, self.image["executions"]
        for row in range(executions.n_rows):
            head = self._head(row)
            if head == NONE:
                continue
            step = self.by_head.get(head)
            if step is None:
                step = self.by_head[head] = Step(head, self.tools[head])
            step.rows.append(row)
            end_ns = int(executions["start_ns"][row] + executions["elapsed_ns"][row])
            step.end_ns = max(step.end_ns, end_ns)
            for path, mode in self.uses(row):
                if mode & ACCESS:
                    step.writes.add(path)
                if mode & 1 == 0:
                    step.reads.add(path)
        readers = image["pipe_readers"]["execution"]
        for row in range(executions.n_rows):
            head = self._head(row)
            for i in executions.span("readers.start", row) if head != NONE else ():
                reader = self._head(readers[i])
                if reader not in (NONE, head):
                    self.by_head[reader].sources[head] = None

    def uses(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the files that an execution opened or inherited, and how."""
        for table in ("opens", "inherited"):
            path, mode = self.image[table]["path"], self.image[table]["mode"]
            for i in self.image["executions"].span(f"{table}.start", row):
                yield path[i], mode[i]

    def programs(self, step: Step) -> set[int]:
        """Return the programs that a step ran."""
        binary = self.image["executions"]["binary"]
        return {binary[row] for row in step.rows} - {NONE}

    def compiles(self, step: Step) -> bool:
        """Return whether a launcher started a compiler, not only its preprocessor."""
        for row in step.rows:
            tool = self.tools.get(row)
            if tool is not None and tool.kind == "compiler":
                words = [self.image.string(string) for string in self._commands.argv(row)]
                if PREPROCESS not in words:
                    return True
        return False
