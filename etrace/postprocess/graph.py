# SPDX-License-Identifier: Apache-2.0
"""Uses of files -> the dependency graph: lists of them by path and by process, in order of time.

Queries like `cas deps` walk it in the image. It depends on no other product and on no
configuration; `libetrace.depend.graph_builder` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from libetrace.depend.graph_builder import TABLES, build_graph
from libetrace.image.file import NewTable

from etrace.figures import count
from etrace.postprocess.run import Work, product


@dataclass(frozen=True, slots=True)
class Graph:
    """The phase."""

    name: str = "graph"
    tables: tuple[str, ...] = TABLES
    inputs: tuple[str, ...] = ()

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables of the graph."""
        tables = build_graph(work.image)
        return [product(name, *tables[name].values()) for name in TABLES]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        n_rows = {table.name: table.n_rows for table in tables}
        uses, processes = n_rows["graph_uses"], n_rows["graph_processes"]
        return f"{count(uses, 'use')} of files by {count(processes, 'process')}"


PHASE = Graph()
