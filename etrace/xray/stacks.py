# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls: which paths from a root took the time, merged or by thread.

A node is one path; its self time is that of its last function alone, so the self times of all nodes
add up to the whole. Folded output has them, one line a path, as flamegraph.pl and speedscope want.
A flame graph (flame.html with the stacks as JSON in it) needs no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from etrace.page_policy import policy
from etrace.xray.names import Names
from etrace.xray.session import Session

Weight = Literal["self", "total", "count"]

#: functions in a folded line; what lies deeper is summed up under a name of its own
MAX_FOLDED = 1000
DEEPER = "[deeper]"


@dataclass(slots=True)
class Node:
    """One path from a root; times are ticks."""

    function: int
    name: str
    depth: int
    parent: Node | None = None
    count: int = 0
    ticks: int = 0
    self_ticks: int = 0
    children: list[Node] = field(default_factory=list)

    def weight(self, weight: Weight) -> int:
        """Return its value by one of the three measures."""
        return {"self": self.self_ticks, "total": self.ticks, "count": self.count}[weight]

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one."""
        path: list[Node] = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]


@dataclass(frozen=True, slots=True)
class Stacks:
    """All paths of one thread, or of all: parents are before their children."""

    nodes: Sequence[Node]
    native: Any
    process: int = -1
    thread: int = -1

    @property
    def roots(self) -> list[Node]:
        """Return the paths of one function."""
        return [node for node in self.nodes if node.parent is None]

    def top(self, weight: Weight, n: int | None) -> list[Node]:
        """Return the paths that weigh most, the heaviest first."""
        ordered = sorted(self.nodes, key=lambda node: node.weight(weight), reverse=True)
        return [node for node in ordered if node.count][:n]

    def folded(self, weight: Weight) -> Iterator[str]:
        """Yield `main;f;g VALUE`, for `total` the path's own value nevertheless: they must add up.

        The value is self time in ticks, or calls. Deeper recursion than MAX_FOLDED is one line with
        all of its value: otherwise 300 kB of log would be 500 MB of lines.
        """
        deeper: dict[int, int] = {}
        shown: dict[int, Node] = {}  # of those that are too deep
        for node in self.nodes:
            value = node.count if weight == "count" else node.self_ticks
            if node.depth >= MAX_FOLDED and node.parent is not None:
                last = shown[id(node)] = shown.get(id(node.parent), node.parent)
                deeper[id(last)] = deeper.get(id(last), 0) + value
            elif value:
                yield f"{_folded_path(node)} {value}"
        for last in {id(node): node for node in shown.values()}.values():
            if deeper[id(last)]:
                yield f"{_folded_path(last)};{DEEPER} {deeper[id(last)]}"


def _folded_path(node: Node) -> str:
    return ";".join(_folded_name(part.name) for part in node.path())


def _folded_name(name: str) -> str:
    return name.replace(";", ":").replace("\n", " ")


def _build(native: Any, names: Names) -> list[Node]:
    nodes: list[Node] = []
    for parent, function, count, ticks, own in native.nodes:
        above = nodes[parent] if parent >= 0 else None
        depth = above.depth + 1 if above else 0
        node = Node(function, names.name(function), depth, above, count, ticks, own)
        if above:
            above.children.append(node)
        nodes.append(node)
    return nodes


def stacks(session: Session, *, deduce: bool = False) -> Stacks:
    """Return the merged stacks of all threads of a session's logs."""
    native = session.account(nodes=True, percentiles=False, deduce=deduce)
    return Stacks(_build(native, session.names), native)


def stacks_by_thread(session: Session, *, deduce: bool = False) -> Iterator[Stacks]:
    """Yield the stacks of each thread that has calls."""
    native = session.account(nodes=True, split=True, percentiles=False, deduce=deduce)
    nodes = _build(native, session.names)
    thread_of: list[int] = []
    by_thread: dict[int, list[Node]] = {}
    for node, (parent, *_) in zip(nodes, native.nodes, strict=True):
        thread_of.append(thread_of[parent] if parent >= 0 else -2 - parent)
        by_thread.setdefault(thread_of[-1], []).append(node)
    for thread, found in by_thread.items():
        yield Stacks(found, native, *native.roots[thread])


def _widths(found: Stacks) -> list[int]:
    """Return ticks of each path and of all below it, also of calls that never ended."""
    number = {id(node): i for i, node in enumerate(found.nodes)}
    widths = [node.self_ticks for node in found.nodes]
    for i in range(len(widths) - 1, -1, -1):  # children are after their parents
        parent = found.nodes[i].parent
        if parent is not None:
            widths[number[id(parent)]] += widths[i]
    return widths


def _table(session: Session, found: Stacks) -> dict[str, Any]:
    """Return names, places, and for each node [parent, name, calls, total ns, self ns]."""
    names: dict[str, int] = {}
    places: list[str] = []
    number = {id(node): i for i, node in enumerate(found.nodes)}
    ns = session.clock.ns
    rows = []
    for node, width in zip(found.nodes, _widths(found), strict=True):
        if node.name not in names:
            names[node.name] = len(names)
            places.append(session.names.place(node.function))
        parent = number[id(node.parent)] if node.parent else -1
        rows.append([parent, names[node.name], node.count, ns(width), ns(node.self_ticks)])
    return {"names": list(names), "places": places, "nodes": rows}


def render_flame_graph(session: Session, found: Stacks, title: str) -> str:
    """Return the page."""
    page = files("etrace.xray").joinpath("flame.html").read_text(encoding="utf-8")
    data = _table(session, found) | {"title": title}
    values = {
        "policy": policy(_between(page, "script"), _between(page, "style")),
        "data": json.dumps(data, ensure_ascii=True).replace("<", "\\u003c"),
    }
    return re.sub(r"@(policy|data)@", lambda mark: values[mark[1]], page)


def _between(page: str, tag: str) -> str:
    return page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
