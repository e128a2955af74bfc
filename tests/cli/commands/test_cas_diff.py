# SPDX-License-Identifier: Apache-2.0
"""`cas diff`: what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of

from etrace.cli.cas import program as cas

SH = 1 << 22 | 9


def test_a_status_that_nobody_saw_is_shown_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, status in (("a", 3), ("b", None)):
        trace = TraceBuilder("/w").exec(SH, "/bin/sh", ["sh", "-c", "x"], cwd="/w")
        trace.use(SH, "/w/in")
        (tmp_path / name).mkdir()
        database_of(tmp_path / name, (trace if status is None else trace.exit(SH, status)).trace())
    assert cas.main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert capsys.readouterr().out == "~ sh -c x\n    status: 3 -> unknown\n"
