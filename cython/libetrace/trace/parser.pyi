# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import TypedDict

from libetrace.trace.source import Source

EVENT_TAGS: tuple[str, ...]
PROBLEMS: tuple[str, ...]

class Counts(TypedDict):
    lines: int
    events: list[int]
    processes: int
    executions: int
    entries: int
    files: int
    paths: int
    pipe_links: int
    problems: list[tuple[int, list[int]]]

def parse(
    source: Source,
    outputs: tuple[int, int, int],
    *,
    jobs: int,
    split: int = 0,
    progress: Callable[[int, int], None] | None = None,
    chunk_bytes: int = 0,
) -> Counts: ...
def parse_bytes(
    data: bytes, *, chunk_bytes: int = 0, split: int = 0, stat: bool = True
) -> tuple[bytes, bytes, bytes, Counts]: ...
