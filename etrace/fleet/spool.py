# SPDX-License-Identifier: Apache-2.0
"""Builds that a fleet could not take yet: a dataset of this machine, whose parts are sent later.

A part in a spool is redacted already. It is removed once the fleet has it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from etrace.fleet.dataset import Dataset
from etrace.fleet.parts import Part, key_of
from etrace.fleet.schema import TABLES
from etrace.fleet.store import Folder, Open


def spool_folder(place: str, environment: Mapping[str, str]) -> Path:
    """Return where builds for a fleet wait: one directory for each fleet and user."""
    state = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return Path(state) / "etrace" / f"fleet-{key_of(place)}"


def waiting(spool: Path) -> list[Part]:
    """Return the parts of a spool, none when there is no spool."""
    return sorted(Folder(spool).parts()) if spool.is_dir() else []


def send(spool: Path, dataset: Dataset) -> tuple[int, int]:
    """Send what waits; return how many builds were sent, and how many the fleet does not take.

    It does not take a build that it has, or that was forgotten. EtraceError, OSError.
    """
    own = Folder(spool)
    n_sent = n_dropped = 0
    for part in waiting(spool):
        dataset.store.check()
        builds = own.manifest(part)
        is_wanted = not set(builds) & dataset.store.forgotten() and not any(
            dataset.has(key, part.project) for key in builds
        )

        def copy(make: Open, part: Part = part) -> None:
            for table in TABLES:
                with own.stream(part, table) as source, make(f"{table}.parquet") as target:
                    shutil.copyfileobj(source, target)

        if is_wanted and dataset.store.publish(part, builds, copy, own.models(part)):
            n_sent += 1
        else:
            n_dropped += 1
        own.remove(part)
    return n_sent, n_dropped
