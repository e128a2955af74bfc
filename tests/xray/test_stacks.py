# SPDX-License-Identifier: Apache-2.0
"""Trees of stacks: llvm-xray's of real logs, folded output, threads merged and apart."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import xray_samples as samples
from xray_builder import LogBuilder
from xray_samples import MT, TAIL, run, session

from etrace.xray.selection import Selection
from etrace.xray.stacks import Stacks, stacks, stacks_by_thread


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_stacks_are_those_of_llvm_xray(name: str) -> None:
    """Exactly, but for recursion: there llvm-xray makes several stacks of one path."""
    blocks = samples.oracle(f"{name}.stack").split("lvl   function")[1:]
    assert blocks
    found = [
        {tuple(part.name[:40] for part in node.path()): node for node in one.nodes}
        for one in stacks_by_thread(session(name))
    ]
    for block in blocks:
        rows = re.findall(r"#\d+\s+(.*?)\s{2,}(\d+)\s+(\d+)\n", block)
        path = tuple(function.rstrip(".")[:40] for function, _, _ in rows)
        figures = [(int(count), int(ticks)) for _, count, ticks in rows]
        ours = [[(p.count, p.ticks) for p in one[path].path()] for one in found if path in one]
        if len(set(path)) == len(path):
            assert figures in ours, path
        else:
            assert any(all(a <= b for a, b in zip(figures, o, strict=True)) for o in ours), path


def test_self_times_of_all_stacks_add_up_to_the_roots() -> None:
    found = stacks(session("mt_pie19.fdr"))
    total = sum(node.self_ticks for node in found.nodes)
    assert total == sum(root.ticks for root in found.roots)
    folded = [line.rpartition(" ") for line in found.folded("self")]
    assert sum(int(value) for _, _, value in folded) == total
    assert len({names for names, _, _ in folded}) == len(folded)


def figures(found: Stacks) -> set[tuple[str, int, int]]:
    return {
        (";".join(part.name for part in node.path()), node.count, node.ticks)
        for node in found.nodes
    }


def test_threads_can_be_kept_apart() -> None:
    found = list(stacks_by_thread(session("mt_pie19.fdr")))
    assert len({one.thread for one in found}) == 5
    together = stacks(session("mt_pie19.fdr"))
    assert sum(n.count for one in found for n in one.nodes) == sum(n.count for n in together.nodes)
    one = found[2]
    alone = replace(session("mt_pie19.fdr"), selection=Selection(threads=[one.thread]))
    (same,) = stacks_by_thread(alone)
    assert (same.process, same.thread) == (one.process, one.thread)
    assert figures(same) == figures(one) == figures(stacks(alone))


def test_a_thread_of_several_logs_has_its_stacks_once() -> None:
    once = session("mt_pie19.fdr")
    found = list(stacks_by_thread(replace(once, paths=[*once.paths, *once.paths])))
    assert len(found) == 5
    assert sum(n.count for one in found for n in one.nodes) == 2 * sum(
        n.count for n in stacks(once).nodes
    )


def test_stacks_of_threads_obey_the_filter(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stack", "--per-thread", "--format", "json", "-t", "25445", MT) == 0
    stacks = json.loads(capsys.readouterr().out)["stacks"]
    assert {row["thread"] for row in stacks} == {25445}
    assert sum(row["count"] for row in stacks) == 72
    assert run("stack", "--per-thread", "-t", "1", MT) == 0
    assert capsys.readouterr().out == ""


def test_a_thread_of_two_logs_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    def counts(*logs: str) -> dict[tuple[int, ...], int]:
        assert run("stack", "--per-thread", "--format", "json", *logs) == 0
        rows = json.loads(capsys.readouterr().out)["stacks"]
        found = {(row["thread"], *row["stack"]): row["count"] for row in rows}
        assert len(found) == len(rows)
        return found

    assert counts(TAIL, TAIL) == {key: 2 * n for key, n in counts(TAIL).items()}
    assert counts(TAIL, MT) == counts(TAIL) | counts(MT)


def test_notes_are_of_all_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    builder = LogBuilder().thread(1).cpu(0, 0).enter(1, 0).exit(1, 1)
    path.write_bytes(builder.thread(2).cpu(0, 0).exit(9, 1).enter(1, 0).exit(1, 1).build())
    assert run("stack", "--per-thread", str(path)) == 0
    assert "note: 1 exit of a call begun before the log" in capsys.readouterr().err
