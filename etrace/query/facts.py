# SPDX-License-Identifier: Apache-2.0
"""Facts about a whole database: counts, where it comes from, versions, configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from libetrace.core.regular_file import read_json
from libetrace.depend.configuration import KEYS, load
from libetrace.image.file import Image
from libetrace.image.freshness import is_older

from etrace import __version__
from etrace.errors import EtraceError
from etrace.query.executions import binaries
from etrace.query.rows.classes import Classes
from etrace.query.totals import totals
from etrace.spec.database import NONE

COMPILERS = ("gcc_spec", "gpp_spec", "clang_spec", "clangpp_spec", "armcc_spec")
LINKERS = ("ld_spec", "ar_spec")


def stat(image: Image) -> Mapping[str, int | None]:
    """Return counts by name; None for products that `cas pp` has not made yet."""
    kinds, found = Classes(image), totals(image)
    known = kinds.are_known
    return {
        "processes": found.processes,
        "execs": image["executions"].n_rows,
        "execs_commands": found.commands,
        "execs_failed": found.failed,
        "execs_compilations": len(kinds.compilations) if known else None,
        "execs_linking": len(kinds.links) if known else None,
        "binaries": len(binaries(image)),
        "opens": found.opens,
        "paths": found.files,
        "linked": image["linked"].n_rows if known else None,
        "linked_paths": found.linked_modules,
        "compiled": found.compilations,
        "compiled_paths": len(kinds.compiled_type) if known else None,
        "patterns": image["patterns"].n_rows if "patterns" in image.tables else None,
    }


def root_pid(image: Image) -> int:
    """Return the upid of the first process without a parent in the trace."""
    executions = image["executions"]
    roots = (row for row, parent in enumerate(executions["parent"]) if parent == NONE)
    row = min(roots, key=lambda row: executions["start_ns"][row], default=NONE)
    if row == NONE:
        raise EtraceError(f"{image.path}: it has no executions", "was a command traced?")
    return int(executions["upid"][row])


def source_root(image: Image) -> bytes:
    """Return the directory where the build began; empty if unknown."""
    return os.fsencode(image.attributes.get("source_root", ""))


def version(image: Image) -> Mapping[str, str | int]:
    """Return the versions; `version` is the one that `cas cache --set-version` set."""
    return {
        "version": image.attributes.get("version", ""),
        "schema": image.schema,
        "etrace": __version__,
    }


def config(image: Image) -> Mapping[str, Any]:
    """Return the keys and the path of the database's .bas_config, or of the shipped one."""
    loaded = load(image.path.parent)
    return {"path": str(loaded.path), **{key: getattr(loaded, key) for key in KEYS}}


def patterns(image: Image, keys: tuple[str, ...]) -> list[str]:
    """Return the distinct globs of several keys (COMPILERS, LINKERS), in order."""
    values = config(image)
    return list(dict.fromkeys(pattern for key in keys for pattern in values[key]))


TRACE_SUFFIXES = ("", ".zst")
STATS_SUFFIX = ".stats"
MAX_STATS_BYTES = 1 << 20
#: how a capture ended that did not end with its build
ENDINGS = {
    "interrupted": "the build was interrupted; the trace ends there",
    "tracer-ended": "the tracer was ended; the trace ends there",
    "write-error": "the trace could not be written to its end",
    "collector-died": "the collector died; the trace ends there",
}


class Origin(NamedTuple):
    """Where a database comes from: `newer` is a trace that it was not made of."""

    newer: Path | None
    remarks: tuple[str, ...]


def _stats(path: Path) -> Mapping[str, Any]:
    try:
        raw = read_json(path, MAX_STATS_BYTES)
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _remarks(stats: Mapping[str, Any]) -> tuple[str, ...]:
    found = [ENDINGS[ended]] if (ended := stats.get("ended")) in ENDINGS else []
    lost = stats.get("lost")
    if isinstance(lost, int) and lost > 0:
        found.append(f"events that the capture lost: {lost:,}")
    return tuple(found)


def origin_of(database: Path) -> Origin:
    """Return what the trace and the stats beside a database say of it. OSError."""
    stem = str(database.with_suffix(""))
    traces = (Path(stem + suffix) for suffix in TRACE_SUFFIXES)
    newer = next((trace for trace in traces if is_older(database, trace)), None)
    remarks = () if newer is not None else _remarks(_stats(Path(stem + STATS_SUFFIX)))
    return Origin(newer, remarks)
