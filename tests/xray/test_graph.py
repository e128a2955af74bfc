# SPDX-License-Identifier: Apache-2.0
"""Who called whom: edges, DOT and SVG, and what changed between two logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from libetrace.xray import account as native
from xray import samples
from xray.builder import LogBuilder
from xray.samples import MT, MT_MAP, NESTED, TAIL, run

from etrace.xray.graph import LABELS, Figures, combine


def test_edges_are_callers_and_callees() -> None:
    done = native.account(NESTED, by="edge")
    assert {(row[1], row[0]): row[2] for row in done.rows} == {(-1, 1): 1, (1, 2): 2}


def test_figures_of_functions_of_one_name_are_put_together() -> None:
    few = Figures(2, 1.0, 2.0, 3.0, 4.0, 9.0, 11.0)
    many = Figures(5, 0.5, 6.0, 7.0, 8.0, 8.5, 20.0)
    both = {which: combine([few, many], which) for which in LABELS if which != "none"}
    assert both == {
        "count": 7, "min": 0.5, "med": 6.0, "90p": 7.0, "99p": 8.0, "max": 9.0, "sum": 31.0,
    }  # fmt: skip


def test_graphs_are_valid_for_graphviz(tmp_path: Path) -> None:
    out = tmp_path / "graph.svg"
    assert run("graph", "--format", "svg", "-m", MT_MAP, MT, "-o", str(out)) == 0
    assert out.read_text().rstrip().endswith("</svg>")
    diff = tmp_path / "diff.svg"
    other = str(samples.program("tail_pie19"))
    status = run(
        "graph-diff",
        "--format",
        "svg",
        "-m",
        MT_MAP,
        "--after-map",
        other,
        MT,
        TAIL,
        "-o",
        str(diff),
    )
    assert status == 0
    assert "gone" in diff.read_text()


def test_callers_that_never_end_are_in_graphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    builder = LogBuilder().thread(1).cpu(0, 0).enter(7, 0).enter(2, 5).exit(2, 5)
    path.write_bytes(builder.build())
    assert run("graph", str(path)) == 0
    shown = capsys.readouterr().out
    assert 'F7 [label="#7\\nnot over"' in shown
    assert 'F7 -> F2 [label="1"]' in shown
    assert run("graph-diff", str(path), str(path)) == 0
    shown = capsys.readouterr().out
    assert "#7\\nnot over" in shown
    assert "1 -> 1 (+0.0 %)" in shown
