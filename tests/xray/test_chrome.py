# SPDX-License-Identifier: Apache-2.0
"""The trace event format, read back by the engine of Chrome's own viewer (DevTools, from npm).

Perfetto's trace processor is not to be had where these tests run: its package fetches a binary from
elsewhere, and Debian's has none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xray import samples

from etrace.xray import convert
from etrace.xray.log import Calls, read
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Session

NODE = Path(sys.executable).with_name("node")
ENGINE = Path(sys.prefix) / "node" / "node_modules" / "@paulirish" / "trace_engine"
SCRIPT = samples.DATA / "chrome_entries.mjs"
LOGS = (*samples.FDR_LOGS, "ev_pie19.basic", "rec_nopie19.basic")


def session(name: str) -> Session:
    return Session([str(samples.log(name))], Names(read_maps([str(samples.program(name))])))


def viewed(path: Path) -> dict[tuple[int, int], Any]:
    """Return what the viewer makes of each thread, by (process, thread)."""
    if not ENGINE.is_dir():
        pytest.fail(f"{ENGINE} is missing: build-aux/setup test")
    done = subprocess.run(
        [NODE, SCRIPT, ENGINE, path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {(thread["pid"], thread["tid"]): thread for thread in json.loads(done.stdout)}


def rows_of(calls: Calls, number: int, one: Session) -> list[tuple[str, float, float, int, float]]:
    """Return name, start, time, depth and self time of a thread's calls, in microseconds."""

    def us(ticks: int) -> float:
        return one.clock.ns(ticks) / 1000

    columns = ("function", "start", "ticks", "depth", "self_ticks", "thread")
    return [
        (one.names.name(f), us(start - one.first_tsc), us(ticks), depth, us(own))
        for f, start, ticks, depth, own, thread in zip(*(calls[c] for c in columns), strict=True)
        if thread == number
    ]


@pytest.mark.parametrize("name", LOGS)
def test_chromes_viewer_nests_the_calls_as_the_log_does(name: str, tmp_path: Path) -> None:
    one = session(name)
    path = tmp_path / "trace.json"
    with path.open("wb") as stream:
        convert.write(one, stream, convert.Options("perfetto"))
    threads = viewed(path)
    log = read(samples.log(name))
    calls = log.calls()
    assert len(calls["start"]) > 10
    assert sorted(threads) == sorted((t.process, t.thread) for t in log.threads)
    for number, thread in enumerate(log.threads):
        view = threads[thread.process, thread.thread]
        assert view["name"] == f"thread {thread.thread}"
        assert view["process"].endswith(f"({thread.process})")
        check_calls(view["calls"], rows_of(calls, number, one))


def check_calls(view: Sequence[Any], ours: Sequence[tuple[str, float, float, int, float]]) -> None:
    got = [(call["name"], call["ts"], call["dur"], call["depth"]) for call in view]
    assert got == [row[:4] for row in ours]
    # every time is rounded to a nanosecond by itself
    for call, (*_, own) in zip(view, ours, strict=True):
        n_inside = sum(call["ts"] <= other["ts"] <= call["ts"] + call["dur"] for other in view)
        assert call["self"] == pytest.approx(own, abs=0.001 * n_inside)
