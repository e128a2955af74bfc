# SPDX-License-Identifier: Apache-2.0
"""What a parser makes of a trace, read back from its files: the same shape for every parser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reference_parser
from libetrace.trace.parser import PROBLEMS
from trace_texts import tables_of, texts_of

from etrace.parse import ProblemKind, parse_trace
from etrace.parse.driver import NothingUsableError

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
    """How to parse: threads, bytes of the pieces that they share (0: as the parser likes).

    `whole` goes through `etrace.parse` as the command does, with files that appear whole.
    """

    jobs: int = 1
    chunk_bytes: int = 0
    whole: bool = False


WHOLE = Way(jobs=2, whole=True)
WAYS = [Way(), Way(jobs=2), Way(chunk_bytes=1), Way(chunk_bytes=50), Way(jobs=2, chunk_bytes=300)]


def parse_by_reference(inputs: list[bytes]) -> Products:
    """Parse with tests/reference_parser.py."""
    parsed = reference_parser.parse(inputs)
    raw = reference_parser.entries_bytes(parsed.entries)
    return Products(raw, parsed.env, parsed.mounts, bool(parsed.problems))


def parse(inputs: list[bytes], directory: Path, way: Way = WHOLE) -> Products:
    """Parse with etrace; its files go to `directory`."""
    output = directory / "db.json"
    has_problems = (parse_files if way.whole else parse_natively)(inputs, output, way)
    env, mounts = (output.with_suffix(f".{name}.json") for name in ("env", "mounts"))
    return Products(
        output.read_bytes(), json.loads(env.read_bytes()), json.loads(mounts.read_bytes()),
        has_problems,
    )  # fmt: skip


def parse_files(inputs: list[bytes], output: Path, way: Way) -> bool:
    """Parse with `etrace.parse`; a trace without events gives empty files here."""
    paths = [output.with_name(f"part{number}.nfsdb") for number in range(len(inputs))]
    for path, content in zip(paths, inputs, strict=True):
        path.write_bytes(content)
    try:
        report = parse_trace(paths, output, jobs=way.jobs)
    except NothingUsableError as error:
        report = error.report
        for suffix, text in ((".json", "[\n]\n"), (".env.json", "{}"), (".mounts.json", "[]")):
            output.with_suffix(suffix).write_text(text)
    return any(problem.kind is not ProblemKind.LOST_EVENTS for problem in report.problems)


def parse_natively(inputs: list[bytes], output: Path, way: Way) -> bool:
    """Parse with libetrace itself, which takes the size of the chunks that threads share."""
    tables, counts = tables_of(inputs, jobs=way.jobs, chunk_bytes=way.chunk_bytes, stat=True)
    ends = (".json", ".env.json", ".mounts.json")
    for end, text in zip(ends, texts_of(tables, jobs=way.jobs), strict=True):
        output.with_suffix(end).write_bytes(text)
    problems = [count for count, _ in counts["problems"]]
    problems[NOT_A_PROBLEM] = 0
    return any(problems)
