# SPDX-License-Identifier: Apache-2.0
"""Small parts -> larger ones; builds that must go -> gone.

A larger part is published before the smaller ones are removed, and readers count a build once
meanwhile (parts.py). Who is killed in between leaves work for the next `compact`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from etrace.errors import NothingFoundError
from etrace.fleet.dataset import EVERYTHING, Dataset, Range, filling
from etrace.fleet.parts import N_DIGITS, SEVERAL, Part, Reading, key_of
from etrace.fleet.schema import TABLES, VERSION, FleetTable, arrow_schema
from etrace.fleet.unfolding import limits, read_rows

#: opens of a part that is written; parts with half of them are left alone
MAX_OPENS = 8_000_000
#: what a killed process left is removed after this time
LEFT_SECONDS = 24 * 3600
#: of a date, what names its month
N_MONTH = len("2026-11")
MAX_ROUNDS = 5


def _rows(dataset: Dataset, table: FleetTable, readings: Sequence[Reading]) -> Any:
    """Return the sorted rows of a table of several parts, in the columns of today."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.compute as pc  # noqa: PLC0415

    schema, found = arrow_schema(table, pa), []
    for reading in readings:
        with dataset.store.stream(reading.part, table.name) as stream:
            rows = read_rows(stream, f"{reading.part.path}/{table.name}")
        if reading.left_out:
            gone = pa.array(list(reading.left_out.values()), pa.string())
            rows = rows.filter(pc.invert(pc.is_in(rows["build"], value_set=gone)))
        for field in schema:
            if field.name not in rows.schema.names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        found.append(rows.select(schema.names).cast(schema))
    order = [(name, "ascending") for name in table.order]
    return pa.concat_tables(found).sort_by(order)


def _merge(dataset: Dataset, readings: Sequence[Reading], date: str) -> Part | None:
    """Write the builds of some parts of a time as one part; return it, None without a build."""
    builds = {key: name for reading in readings for key, name in _named(dataset, reading)}
    if not builds:
        return None
    first = readings[0].part
    digest = hashlib.sha256(" ".join(sorted(builds)).encode()).hexdigest()[:N_DIGITS]
    part = Part(VERSION, first.project, date, SEVERAL + digest)
    fill = filling(lambda: ((t, _rows(dataset, t, readings)) for t in TABLES.values()))
    models = [path for reading in readings for path in dataset.store.models(reading.part)]
    dataset.store.publish(part, builds, fill, models)
    return part


def _named(dataset: Dataset, reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield key and id of each build that is read of a part."""
    named = dataset.store.manifest(reading.part) if reading.part.is_single else reading.builds
    yield from ((key, named[key]) for key in reading.builds)


def _opens(dataset: Dataset, part: Part) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415  an extra

    with dataset.store.stream(part, "opens") as stream:
        return int(pq.ParquetFile(stream, **limits()).metadata.num_rows)


def _batches(dataset: Dataset, readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """Yield the parts of a day that become one."""
    batch: list[Reading] = []
    n_opens = 0
    for reading in readings:
        own = _opens(dataset, reading.part)
        if own >= MAX_OPENS // 2 and not reading.left_out:
            continue
        if batch and n_opens + own > MAX_OPENS:
            yield batch
            batch, n_opens = [], 0
        batch.append(reading)
        n_opens += own
    if len(batch) > 1 or any(reading.left_out for reading in batch):
        yield batch


def compact(
    dataset: Dataset, wanted: Range = EVERYTHING, *, by_month: bool = False
) -> tuple[int, int]:
    """Join the parts of each project and day, or month; return how many parts became how many."""
    readings = dataset.readings(wanted)
    n_before = n_after = 0

    def key(reading: Reading) -> tuple[str, str]:
        return reading.part.project, reading.part.date[: N_MONTH if by_month else None]

    for (_, date), group in groupby(sorted(readings, key=key), key=key):
        for batch in _batches(dataset, list(group)):
            _replace(dataset, batch, date)
            n_before, n_after = n_before + len(batch), n_after + 1
    _drop_duplicates(dataset, wanted)
    _index(dataset, [])
    dataset.store.sweep(time.time() - LEFT_SECONDS)
    return n_before, n_after


def _replace(dataset: Dataset, readings: Sequence[Reading], date: str) -> None:
    part = _merge(dataset, readings, date)
    for reading in readings:
        is_it = part is not None and reading.part.path.startswith(part.path)
        if not is_it:
            dataset.store.remove(reading.part)
    for key in {key for reading in readings for key in reading.builds}:
        if key in dataset.store.forgotten():  # meanwhile
            _take_out(dataset, key)


def _index(dataset: Dataset, folders: Iterable[str]) -> None:
    """Write down which builds are in which larger parts of these projects and all others.

    It is done again when parts changed meanwhile: no index names a build that is forgotten.
    """
    for _ in range(MAX_ROUNDS):
        parts = [part for part in dataset.store.parts() if not part.is_single]
        builds_of = dataset.builds_of(parts)
        found: dict[str, dict[str, Mapping[str, str]]] = {folder: {} for folder in folders}
        for part in parts:
            found.setdefault(part.of_project, {})[part.path] = builds_of(part)
        stale = [folder for folder, own in found.items() if own != dataset.store.index(folder)]
        if not stale:
            return
        for folder in stale:
            dataset.store.write_index(folder, found[folder])


def _drop_duplicates(dataset: Dataset, wanted: Range) -> None:
    """Remove parts whose builds are all read from others."""
    if wanted != EVERYTHING:  # the others may be outside it
        return
    there = list(dataset.store.parts())  # first: what is added from here on is not looked at
    read = {reading.part for reading in dataset.readings()}
    for part in there:
        if part not in read:
            dataset.store.remove(part)


def _take_out(dataset: Dataset, key: str) -> int:
    """Remove what there is of a build; return from how many parts."""
    n_parts = 0
    for part in list(dataset.store.parts()):
        builds = {part.key: ""} if part.is_single else dataset.store.manifest(part)
        if key not in builds:
            continue
        n_parts += 1
        if part.is_single or len(builds) == 1:
            dataset.store.remove(part)
        else:
            gone = {key: builds[key]}
            kept = {other: name for other, name in builds.items() if other != key}
            _merge(dataset, [Reading(part, kept, gone)], part.date)
            dataset.store.remove(part)
    return n_parts


def _of_days(dataset: Dataset, part: Part, date: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the builds of a part that are of a day from a date on, and the earlier ones."""
    rows = _rows(dataset, TABLES["builds"], [Reading(part, {}, {})])
    old = {
        key_of(build)
        for build, day in zip(rows["build"].to_pylist(), rows["date"].to_pylist(), strict=True)
        if day.isoformat() < date
    }
    builds = dataset.store.manifest(part)
    return (
        {key: name for key, name in builds.items() if key not in old},
        {key: name for key, name in builds.items() if key in old},
    )


def forget_build(dataset: Dataset, build: str) -> int:
    """Remove a build for good; return from how many parts. It is never added again."""
    dataset.store.check()
    key = key_of(build)
    was_forgotten = key in dataset.store.forgotten()
    dataset.store.forget(key)  # readers leave it out from here on
    folders = {part.of_project for part in dataset.store.parts()}
    n_parts = _take_out(dataset, key)
    _index(dataset, folders)
    if not n_parts and not was_forgotten:
        raise NothingFoundError(
            f"{dataset.store.place}: build {build} is not there", "it will not be added either"
        )
    return n_parts


def forget_before(dataset: Dataset, date: str, projects: Sequence[str] = ()) -> int:
    """Remove the builds of the days before a date; return of how many parts."""
    dataset.store.check()
    wanted, n_parts = Range(tuple(projects)), 0
    folders = {part.of_project for part in dataset.store.parts()}
    for part in [p for p in dataset.store.parts() if wanted.takes(p) and p.days[0] < date]:
        kept, old = _of_days(dataset, part, date) if part.days[1] >= date else ({}, {"": ""})
        if old and kept:
            _merge(dataset, [Reading(part, kept, old)], part.date)
        if old:
            dataset.store.remove(part)
            n_parts += 1
    _index(dataset, folders)
    return n_parts
