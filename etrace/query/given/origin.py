# SPDX-License-Identifier: Apache-2.0
"""A database -> what the files beside it say of it: an older build, an incomplete one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_json
from libetrace.image.freshness import is_older

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


@dataclass(frozen=True, slots=True)
class Origin:
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
