# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import IO, Any, TypedDict

from libetrace.trace.source import Source

EVENT_TAGS: tuple[str, ...]
PROBLEMS: tuple[str, ...]

class Counts(TypedDict):
    bytes: int
    lines: int
    events: list[int]
    processes: int
    executions: int
    files: int
    paths: int
    pipe_links: int
    has_uses: bool
    problems: list[tuple[int, list[int]]]

def parse(
    source: Source,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    chunk_bytes: int = 0,
    stat: bool = True,
    file: IO[bytes] | None = None,
    budget: int = 0,
) -> tuple[list[list[Any]], Counts]: ...
