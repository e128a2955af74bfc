# SPDX-License-Identifier: Apache-2.0
"""A trace -> a database: `.nfsdb.json`, its side files and the image, unless they are fresh."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libetrace.image.file import Image
from libetrace.image.freshness import is_same, remember

from etrace.errors import EtraceError
from etrace.nfsdb.build import build_image, root_of
from etrace.nfsdb.files import STEM, DatabaseFiles, name_files
from etrace.nfsdb.store import is_fresh, reopen
from etrace.parse.driver import parse_trace
from etrace.parse.inputs import STDIN, ZSTD_SUFFIX, expand, read_head
from etrace.parse.report import ParseReport

#: what a trace is called in its directory: whole, compressed, in parts of each CPU
TRACES = (STEM, f"{STEM}{ZSTD_SUFFIX}", f"{STEM}_parts")
#: attribute of the image: the problems that the parser found, a line each
PROBLEMS = "parse_problems"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What came of a trace; `report` is None when the database was there and fresh."""

    files: DatabaseFiles
    problems: tuple[str, ...]
    report: ParseReport | None


def find_trace(directory: Path) -> Path:
    """Return the trace in a directory. EtraceError."""
    for name in TRACES:
        if (directory / name).exists():
            return directory / name
    raise EtraceError(
        f"{directory}: no trace ({', '.join(TRACES)})", "make one: etrace run -- make -j8"
    )


def name_database(traces: Sequence[Path], directory: Path | None) -> DatabaseFiles:
    """Name the database of a trace: X for the file X or X.zst, `.nfsdb` for a directory of parts.

    It lies in `directory`, else beside the trace.
    """
    first = traces[0]
    name, folder = STEM, first.parent
    if str(first) == STDIN:
        folder = Path()
    elif not first.is_dir():
        name = first.name.removesuffix(ZSTD_SUFFIX)
    elif first.name not in TRACES:
        folder = first
    return name_files((directory or folder) / name)


def _open(files: DatabaseFiles) -> Image | None:
    try:
        return reopen(files.image)
    except (EtraceError, OSError):
        return None


def find_parsed(files: DatabaseFiles, inputs: Sequence[str]) -> Parsed | None:
    """Return the database when it was made of these very traces and nothing was changed since."""
    image = _open(files)
    if image is None or not files.json.exists() or not is_fresh(image, files):
        return None
    known = image.attributes.get("traces")
    problems = image.attributes.get(PROBLEMS)
    if not isinstance(known, Mapping) or problems is None:
        return None
    wanted = [os.path.abspath(name) for name in inputs]  # noqa: PTH100  links stay
    if sorted(known) != sorted(wanted):
        return None
    if not all(is_same(Path(name), known[name]) for name in wanted):
        return None
    return Parsed(files, tuple(problems), None)


def _remember(inputs: Sequence[str]) -> dict[str, Any]:
    """Return what is remembered of each input; standard input is gone when it was read."""
    paths = (Path(name).absolute() for name in inputs if name != STDIN)
    return {str(path): remember(path) for path in paths}


def _said(inputs: Sequence[str], said: Mapping[str, str]) -> dict[str, str]:
    """Return what counts for the database: the root is in the first part that tells it."""
    if said.get("source_root"):
        return dict(said)
    roots = (root_of(read_head(name)) for name in inputs if name != STDIN)
    root = next((root for root in roots if root is not None), None)
    return dict(said) if root is None else {**said, "source_root": root}


def parse_database(
    traces: Sequence[Path],
    files: DatabaseFiles,
    *,
    force: bool = False,
    jobs: int = 0,
    said: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Parsed:
    """Make the database `files` of traces, or find that it is there and fresh.

    The image is written last: interrupted before, it is stale or missing and made again when it is
    asked for. EtraceError, OSError.
    """
    inputs = [name for trace in traces for name in expand(os.fspath(trace))]
    if not force and STDIN not in inputs:
        found = find_parsed(files, inputs)
        if found is not None:
            return found
    remembered = _remember(inputs)  # before it is read: what is written to it later is noticed
    report = parse_trace(inputs, files.json, jobs=jobs, progress=progress)
    problems = tuple(map(str, report.problems))
    build_image(files, remembered, _said(inputs, said or {}), {PROBLEMS: problems})
    return Parsed(files, problems, report)
