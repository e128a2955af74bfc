# SPDX-License-Identifier: Apache-2.0
"""A trace in another version or layout, or of a part of its processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from etrace.errors import EtraceError, UsageError
from etrace.imports.access_trace.model import (
    NOT_APPLICABLE,
    AccessTrace,
    Attributes,
    Correlation,
    Layout,
)


def layout_of(trace: AccessTrace) -> Layout:
    """Return where the paths of a trace are."""
    return Layout.SPLIT if trace.paths else Layout.MANIFEST


def check(version: int, layout: Layout | None) -> None:
    """Refuse what no version has. UsageError."""
    if version > 1 and layout is Layout.SPLIT:
        raise UsageError(
            f"version {version} has all paths in one block", "--path-blocks split is for version 1"
        )


def in_form(trace: AccessTrace, version: int, layout: Layout) -> AccessTrace:
    """Return a trace in a version and layout. `split` is kept, but never made here."""
    if layout is Layout.MANIFEST and trace.paths:
        trace = _in_one_block(trace)
    correlations, attributes = trace.correlations, trace.attributes
    if version > 1 and trace.version < 2:
        correlations = [Correlation(event.id, n, 0) for n, event in enumerate(trace.events, 1)]
    if version > 2 and trace.version < 3:
        unknown = NOT_APPLICABLE
        attributes = [Attributes(event.id, unknown, unknown) for event in trace.events]
    return replace(trace, version=version, correlations=correlations, attributes=attributes)


def _in_one_block(trace: AccessTrace) -> AccessTrace:
    manifest = dict(trace.manifest)
    known = {path: number for number, path in manifest.items()}
    last, moved = max(manifest, default=0), {}
    for number, path in trace.paths.items():
        if path not in known:
            last += 1
            known[path], manifest[last] = last, path
        moved[number] = known[path]
    events = [
        event if event.path is None else event._replace(manifest=moved[event.path], path=None)
        for event in trace.events
    ]
    return replace(trace, manifest=manifest, paths={}, events=events)


def split(trace: AccessTrace, is_second: Callable[[bytes], bool]) -> AccessTrace:
    """Return a trace with those paths in the second block for which `is_second` holds.

    Both blocks are numbered from 1, in the order in which paths are used.
    """
    blocks: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    events = []
    for event in trace.events:
        path = trace.path_of(event)
        second = is_second(path)
        number = blocks[second].setdefault(path, len(blocks[second]) + 1)
        ids = (None, number) if second else (number, None)
        events.append(event._replace(manifest=ids[0], path=ids[1]))
    manifest, paths = ({n: path for path, n in block.items()} for block in blocks)
    return replace(trace, events=events, manifest=manifest, paths=paths)


def subtree(trace: AccessTrace, root: int) -> AccessTrace:
    """Return what a process and its descendants did. EtraceError when there is no such pid.

    A pid that came again counts as one.
    """
    if root not in {process.pid for process in trace.processes}:
        raise EtraceError(f"{root}: no process of the trace", "name a pid of its process block")
    children: dict[int, list[int]] = {}
    for process in trace.processes:
        children.setdefault(process.parent, []).append(process.pid)
    pids, ahead = set[int](), [root]
    while ahead:
        pid = ahead.pop()
        if pid not in pids:
            pids.add(pid)
            ahead += children.get(pid, ())
    return of_processes(trace, pids)


def of_processes(trace: AccessTrace, pids: set[int]) -> AccessTrace:
    """Return the part of a trace that belongs to some processes, numbered as before."""
    events = [event for event in trace.events if event.pid in pids]
    ids = {event.id for event in events}
    return replace(
        trace,
        operations=_used(trace.operations, (event.operation for event in events)),
        accesses=_used(trace.accesses, (event.access for event in events)),
        processes=[process for process in trace.processes if process.pid in pids],
        manifest=_used(trace.manifest, (event.manifest for event in events)),
        paths=_used(trace.paths, (event.path for event in events)),
        events=events,
        correlations=[each for each in trace.correlations if each.id in ids],
        attributes=[each for each in trace.attributes if each.id in ids],
    )


def _used(block: dict[int, bytes], numbers: Iterable[int | None]) -> dict[int, bytes]:
    wanted = set(numbers)
    return {number: text for number, text in block.items() if number in wanted}
