# SPDX-License-Identifier: Apache-2.0
"""What a parser makes of a trace, read back from its files: the same shape for every parser."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import TraceBuilder
from databases import tables_of, texts_of
from libetrace.trace.parser import PROBLEMS
from reference import parser as reference_parser
from reference import values

from etrace.parse import ProblemKind, parse_trace
from etrace.parse.driver import NothingUsableError

Entry = dict[str, Any]
NOT_A_PROBLEM = PROBLEMS.index("lost-events")


@dataclass(frozen=True, slots=True)
class Products:
    """The three files of a parse and whether there was anything to report."""

    raw: bytes  #: the main file, unparsed
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
    """Parse with tests/reference/parser.py."""
    parsed = reference_parser.parse(inputs)
    raw = values.entries_bytes(parsed.entries)
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


# ---- processes, times and the values of entries


SHELL, LEFT, RIGHT, OTHER = (number << 22 | 77 for number in (1, 2, 3, 4))
T0 = 5_000_000_000

Parse = Callable[[TraceBuilder | bytes], Products]


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
