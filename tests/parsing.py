# SPDX-License-Identifier: Apache-2.0
"""What a parser makes of a trace, read back from its files: the same shape for every parser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reference_parser
from libetrace.parser import PROBLEMS
from libetrace.parser import parse as parse_source
from libetrace.source import Source

Entry = dict[str, Any]
NOT_A_PROBLEM = PROBLEMS.index("lost-events")


@dataclass(frozen=True, slots=True)
class Products:
    """The three files of a parse and whether there was anything to report."""

    raw: bytes  #: the main file as it is
    env: dict[str, list[int]]
    mounts: list[Entry]
    has_problems: bool

    @property
    def entries(self) -> list[Entry]:
        """The main file's value."""
        value: list[Entry] = json.loads(self.raw)
        return value


@dataclass(frozen=True, slots=True)
class Way:
    """How to parse: threads, and bytes of the pieces that they share (0: as the parser likes)."""

    jobs: int = 1
    chunk_bytes: int = 0


WAYS = [Way(), Way(jobs=2), Way(chunk_bytes=1), Way(chunk_bytes=50), Way(jobs=2, chunk_bytes=300)]


def parse_by_reference(inputs: list[bytes]) -> Products:
    """Parse with tests/reference_parser.py."""
    parsed = reference_parser.parse(inputs)
    raw = reference_parser.entries_bytes(parsed.entries)
    return Products(raw, parsed.env, parsed.mounts, bool(parsed.problems))


def parse(inputs: list[bytes], directory: Path, way: Way = WAYS[0]) -> Products:
    """Parse with libetrace; its files go to `directory`."""
    sources = [Source.from_bytes(content) for content in inputs]
    source = sources[0] if len(sources) == 1 else Source.merge(sources)
    paths = [directory / name for name in ("db.json", "db.env.json", "db.mounts.json")]
    files = [path.open("wb") for path in paths]
    try:
        main, env, mounts = (file.fileno() for file in files)
        counts = parse_source(
            source, (main, env, mounts), jobs=way.jobs, chunk_bytes=way.chunk_bytes
        )
    finally:
        for file in files:
            file.close()
    problems = [count for count, _ in counts["problems"]]
    problems[NOT_A_PROBLEM] = 0
    raw, env_raw, mounts_raw = (path.read_bytes() for path in paths)
    return Products(raw, json.loads(env_raw), json.loads(mounts_raw), any(problems))
