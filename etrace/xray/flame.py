# SPDX-License-Identifier: Apache-2.0
"""A flame graph in one HTML file that needs no network: zoom, search, tooltips, keyboard.

The page is flame.html; the merged stacks are put into it as JSON.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from etrace.page_policy import policy
from etrace.xray.session import Session
from etrace.xray.stacks import Stacks


def _widths(found: Stacks) -> list[int]:
    """Return ticks of each path and of all below it, also of calls that never ended."""
    number = {id(node): i for i, node in enumerate(found.nodes)}
    widths = [node.self_ticks for node in found.nodes]
    for i in range(len(widths) - 1, -1, -1):  # children stand behind their parents
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


def render(session: Session, found: Stacks, title: str) -> str:
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
