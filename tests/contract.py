# SPDX-License-Identifier: Apache-2.0
"""What tests of docs/nfsdb-json.md share: processes, times and the values of entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builders import TraceBuilder
from parsing import Products

SHELL, LEFT, RIGHT, OTHER = (number << 22 | 77 for number in (1, 2, 3, 4))
T0 = 5_000_000_000

Parse = Callable[[TraceBuilder | bytes], Products]
Entry = dict[str, Any]


def column(products: Products, key: str) -> dict[tuple[int, int], Any]:
    """Return one key of every entry that has it."""
    return {(e["p"], e["x"]): e[key] for e in products.entries if key in e}


def readers(products: Products) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return the pipe links that there are."""
    links = column(products, "i")
    return {writer: [(r["p"], r["x"]) for r in links[writer]] for writer in links if links[writer]}


def files(products: Products, upid: int, index: int = 0) -> list[Entry]:
    """Return the opened files of an execution, access bits alone."""
    return [
        {k: v & 3 if k == "m" else v for k, v in file.items() if k != "s"}
        for file in column(products, "o")[upid, index]
    ]


def pipeline() -> TraceBuilder:
    """Return what a shell does for `left | right`."""
    t = TraceBuilder().exec(SHELL, "/bin/sh").pipe(SHELL, 3, 4)
    t.fork(SHELL, LEFT).close(SHELL, 4)
    t.fork(SHELL, RIGHT).close(SHELL, 3)
    t.close(LEFT, 3).dup(LEFT, 4, 1).close(LEFT, 4).exec(LEFT, "/bin/left")
    return t.dup(RIGHT, 3, 0).close(RIGHT, 3).exec(RIGHT, "/bin/right")
