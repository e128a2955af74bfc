# SPDX-License-Identifier: Apache-2.0
"""Files -> the commands and inputs that made them, step by step: a graph as JSON or DOT."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping

from libetrace.depend.makers import Maker, Makers
from libetrace.image.file import Image


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
