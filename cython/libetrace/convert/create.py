# SPDX-License-Identifier: Apache-2.0
"""Traces and entries -> files of a database, and what their versions are."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

from libetrace.convert.importer import Importer, JsonError
from libetrace.convert.json_files import write_json_files
from libetrace.core.errors import Error
from libetrace.core.folders import narrow
from libetrace.core.texts import PathText, encode_path
from libetrace.image.file import (
    NewTable,
    image_in_memory,
    new_table,
    new_tables,
    open_image,
    replacing,
    write_image,
)
from libetrace.trace.parser import parse
from libetrace.trace.source import Source

SIDE_FILES = ("env", "mounts")


# ---- versions ----


def image_version(path: PathText) -> int:
    """Return the schema version of an image; `libetrace.error` when it cannot be read."""
    return open_image(os.fsdecode(path)).schema


def database_version(path: PathText) -> str:
    """Return what `cas cache --set-version` wrote into an image."""
    return str(open_image(os.fsdecode(path)).attributes.get("version", ""))


# ---- entries -> image ----


def _add_patterns(tables: dict[str, NewTable], patterns: Sequence[bytes]) -> None:
    """Add the texts of the patterns whose bits the entries have as "n"."""
    texts = []
    if "added_strings" in tables:
        start, data = (memoryview(c.data).cast("B") for c in tables["added_strings"].columns)
        bounds = start.cast("Q")
        texts = [bytes(data[bounds[i] : bounds[i + 1]]) for i in range(len(bounds) - 1)]
    first = tables["strings"].n_rows + len(texts)
    texts += patterns
    starts = array("Q", accumulate(map(len, texts), initial=0))
    tables["added_strings"] = new_table("added_strings", [starts, b"".join(texts)])
    rows = array("I", range(first, first + len(patterns)))
    tables["patterns"] = new_table("patterns", [rows])


def create_nfsdb(
    db: Sequence[Mapping[str, Any]],
    src_root: PathText,
    set_version: str,
    pcp_patterns: Sequence[str | bytes],
    shared_argvs: Sequence[str],
    cache_db_filename: PathText,
    show_stats: bool = False,
) -> bool:
    """Make an image of entries of a `.nfsdb.json`; True, or `libetrace.error`.

    `pcp_patterns` are the texts whose bits the entries have as "n". `shared_argvs` and `show_stats`
    have no effect: a linked module itself shows whether it is shared, and a library prints nothing.
    """
    del shared_argvs, show_stats
    importer = Importer()
    try:
        importer.read_entries(Source.from_bytes(json.dumps(list(db)).encode()))
    except JsonError as error:
        raise Error(f"the entries are not a database: {error.message}") from error
    made = new_tables(importer.columns(), importer.products)
    tables = {table.name: table for table in made}
    if pcp_patterns:
        _add_patterns(tables, [encode_path(pattern) for pattern in pcp_patterns])
    root = encode_path(src_root).decode("utf-8", "surrogateescape")
    attributes = {
        "source_root": root,
        "version": set_version,
        **importer.attributes,
    }
    write_image(os.fsdecode(cache_db_filename), attributes, list(tables.values()))
    return True


# ---- trace -> JSON ----


def _count_jobs(threads: str | int | None) -> int:
    """`-jN`, N or a number; without one as many as there are CPUs."""
    digits = str(threads or "").removeprefix("-j")
    return min(int(digits) if digits else len(os.sched_getaffinity(0)), 64)


def _outputs(database: Path) -> list[Path]:
    stem = database.name.removesuffix(".json")
    return [database, *(database.with_name(f"{stem}.{kind}.json") for kind in SIDE_FILES)]


def parse_nfsdb(
    tracer_db_filename: PathText, json_db_filename: PathText, threads: str | int | None = None
) -> int:
    """Parse a trace to `.nfsdb.json` and the side files beside it; 0, or what went wrong raised.

    The files get their names when all of them are whole. `threads` is "-jN".
    """
    source = Path(os.fsdecode(tracer_db_filename))
    with ExitStack() as stack:
        trace = stack.enter_context(source.open("rb"))
        fds = []
        for target in _outputs(Path(os.fsdecode(json_db_filename))):
            stream = stack.enter_context(replacing(target, is_new=True))  # the first one comes last
            narrow(stream.fileno(), [source])
            fds.append(stream.fileno())
        jobs = _count_jobs(threads)
        columns, _ = parse(Source.from_fd(trace.fileno()), jobs=jobs)
        image = image_in_memory(new_tables(columns))
        del columns
        write_json_files(image, (fds[0], fds[1], fds[2]), jobs=jobs)
    return 0
