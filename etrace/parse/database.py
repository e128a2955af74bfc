# SPDX-License-Identifier: Apache-2.0
"""A trace -> a database: its image and, on request, JSON. Fresh files are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from libetrace.core.folders import followed
from libetrace.image.file import Image, write_image
from libetrace.image.freshness import is_same, remember

from etrace.errors import EtraceError
from etrace.nfsdb import hash_records, hashes, marks
from etrace.nfsdb.build import describe, remember_sources, root_of
from etrace.nfsdb.files import STEM, TRACES, DatabaseFiles, name_files
from etrace.nfsdb.products import add_responses, reopen
from etrace.nfsdb.store import is_fresh
from etrace.parse import responses
from etrace.parse.driver import count_jobs, parse_tables
from etrace.parse.inputs import STDIN, ZSTD_SUFFIX, expand, read_head
from etrace.parse.report import ParseReport

#: attribute of the image: the problems that the parser found, one on each line
PROBLEMS = "parse_problems"


class Parsed(NamedTuple):
    """The result for a trace; `report` is None when the database was already fresh."""

    files: DatabaseFiles
    problems: tuple[str, ...]
    report: ParseReport | None


def find_trace(directory: Path) -> Path:
    """Return the trace in a directory. EtraceError."""
    for name in TRACES:
        trace = directory / name
        if trace.exists() and not (trace.is_file() or trace.is_dir()):  # a pipe, an endless device
            raise EtraceError(f"{trace}: not a file", "name the trace: cas parse TRACE")
        if trace.exists():
            return trace
    raise EtraceError(
        f"{directory}: no trace ({', '.join(TRACES)})", "make one: etrace run -- make -j8"
    )


def name_database(traces: Sequence[Path], directory: Path | None) -> DatabaseFiles:
    """Name the database of a trace: X for the file X or X.zst, `.nfsdb` for a directory of parts.

    The database is in `directory`, else beside the trace.
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
    """Return the database if it was made from these traces and nothing has changed since."""
    image = _open(files)
    if image is None or not is_fresh(image, files):
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
    """Return the stamp of each input; a pipe has none."""
    paths = (Path(name).absolute() for name in inputs if name != STDIN)
    return {str(path): remember(path) for path in paths if path.is_file()}


def _said(inputs: Sequence[str], said: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes for the database; the first part with a source root gives it."""
    if said.get("source_root"):
        return dict(said)
    roots = (root_of(read_head(name)) for name in inputs if name != STDIN)
    root = next((root for root in roots if root is not None), None)
    return dict(said) if root is None else {**said, "source_root": root}


def _check_distinct(inputs: Sequence[str], files: DatabaseFiles) -> None:
    """Refuse to overwrite a trace with its own database."""
    for target in (files.json, files.image):
        for name in inputs:
            if name != STDIN and target.exists() and target.samefile(name):
                raise EtraceError(
                    f"{target} is an input and the output", "name another file to write: X.json"
                )


class _Making(NamedTuple):
    """Makes a database from traces, and its JSON when `with_json`."""

    inputs: Sequence[str]
    files: DatabaseFiles
    said: Mapping[str, str]
    jobs: int
    split: int
    with_json: bool
    hashes_rest: bool = False

    @property
    def models(self) -> list[Path]:
        """The files whose readers may read the outputs."""
        return [Path(name) for name in self.inputs if name != STDIN]

    def run(self, progress: Callable[[int, int], None] | None) -> tuple[ParseReport, list[str]]:
        """Parse and write all files, the image last, so that an incomplete database is stale.

        Return the report, and problems with the files beside the traces.
        """
        remembered = _remember(self.inputs)  # before reading, so later writes are noticed
        tables, report = parse_tables(
            self.inputs, jobs=self.jobs, progress=progress, directory=self.files.image.parent
        )
        sides = responses.find_sides(self.inputs)
        found = responses.collect(sides)

        def describe_image(image: Image) -> dict[str, Any]:
            if self.with_json:
                from etrace.nfsdb.to_json import write_json_files  # noqa: PLC0415  seldom needed

                output, jobs = self.files.json, count_jobs(self.jobs)
                write_json_files(image, output, self.models, jobs=jobs, split=self.split)
                responses.write(found, sides, self.files.responses)
            sources = remember_sources(self.files)
            said = _said(self.inputs, self.said)
            problems = [str(problem) for problem in report.problems]
            return {
                **describe(image, self.files, sources, remembered, said),
                PROBLEMS: problems,
            }

        write_image(self.files.image, describe_image, tables, self.models, is_new=True)
        if found:
            add_responses(self.files.image, found)
        is_own = marks.keep_all(self.inputs)
        damaged = add_hashes(self.inputs, self.files, self.jobs, hashes_rest=self.hashes_rest)
        if is_own:
            marks.mark(self.files.image)
        return report, damaged


def add_hashes(
    inputs: Sequence[str], files: DatabaseFiles, jobs: int, *, hashes_rest: bool
) -> list[str]:
    """Add the hashes of the captures to an image, and those of all other files if wanted."""
    sides = responses.find_sides(inputs, hash_records.SUFFIX)
    return hashes.add_hashes(
        files.image, sides, hashes_rest=hashes_rest, n_threads=count_jobs(jobs)
    )


def _make(
    making: _Making, progress: Callable[[int, int], None] | None
) -> tuple[ParseReport, list[str]]:
    target = making.files.json if making.with_json else making.files.image
    _check_distinct(making.inputs, making.files)
    try:
        return making.run(progress)
    except OSError as error:
        raise EtraceError(
            f"cannot write {target}: {error.strerror}", "free some space, or choose another place"
        ) from error


def parse_database(
    traces: Sequence[Path],
    files: DatabaseFiles,
    *,
    force: bool = False,
    with_json: bool = False,
    with_hashes: bool = False,
    jobs: int = 0,
    said: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Parsed:
    """Make the database `files` from traces, unless it is fresh.

    JSON files are written with `with_json`, or when there is an older one. `with_hashes`: files
    that the capture did not hash are hashed as they are now. The image is written last, apart from
    hashes; after an interruption it is stale or missing. EtraceError; NothingUsableError when the
    trace has no event.
    """
    inputs = [name for trace in traces for name in expand(os.fspath(trace))]
    if not force and STDIN not in inputs:
        found = find_parsed(files, inputs)
        if found is not None:
            if with_json and not files.json.exists():
                from etrace.nfsdb.to_json import add_json  # noqa: PLC0415  seldom needed

                add_json(files, count_jobs(jobs))
            if with_hashes and not reopen(files.image).attributes.get(hashes.ALL):
                add_hashes(inputs, files, jobs, hashes_rest=True)
            return found
    with_json = with_json or files.json.exists()
    making = _Making(inputs, files, said or {}, jobs, 0, with_json, with_hashes)
    report, damaged = _make(making, progress)
    return Parsed(files, (*map(str, report.problems), *damaged), report)


def parse_trace(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    jobs: int = 0,
    split: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ParseReport:
    """Parse a trace into the image X.img and `output`, X.json, with the JSON files beside it.

    X.rsp.json has the contents of response files, if they were captured. `inputs` are .nfsdb files,
    directories of parts or `-`; several are merged by time. `jobs` is the number of threads (0: one
    for each CPU). `split` breaks entries whose files have paths of more bytes than that into
    several (0: never). `progress(done, total)` is called with bytes now and then.

    Each file appears whole or not at all. Raises EtraceError when an input cannot be read or an
    output not be written, NothingUsableError when the trace holds no event.
    """
    names = [name for given in inputs for name in expand(os.fspath(given))]
    try:
        target = followed(Path(output))
    except OSError as error:
        raise EtraceError(
            f"cannot write {output}: {error.strerror}", "choose another place for the output"
        ) from error
    files = name_files(target.with_name(target.name.removesuffix(".json")))._replace(json=target)
    return _make(_Making(names, files, {}, jobs, split, with_json=True), progress)[0]
