# SPDX-License-Identifier: Apache-2.0
"""Names of functions: maps, globs, and logs that do not fit the map."""

from __future__ import annotations

import pytest
import xray_samples as samples
from xray_samples import MT, MT_MAP, TAIL, run, session

from etrace.errors import EtraceError
from etrace.xray.account import account
from etrace.xray.selection import Selection


def test_functions_are_chosen_by_globs() -> None:
    report = account(session("mt_pie19.fdr", selection=Selection(functions=["leaf*", "main"])))
    assert {row.name for row in report.rows} == {"leaf(int)", "main"}
    with pytest.raises(EtraceError, match="no function matches nothing"):
        account(session("mt_pie19.fdr", selection=Selection(functions=["nothing"])))


def test_a_log_of_another_program_gets_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "-m", str(samples.program("ev_pie19")), MT) == 0
    assert "is it the program that wrote the log?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", f"999={MT_MAP}"], "object 999 is above 255"),
        (["-m", f"0={MT_MAP}", "-m", f"0={MT_MAP}"], "object 0 has a map already"),
        (["-m", f"\N{SUPERSCRIPT TWO}={MT_MAP}"], "cannot read"),
        (["-f", "#\N{SUPERSCRIPT TWO}"], "no function matches"),
        (["-f", "#4294967299"], "no function matches"),  # 3 in its low 32 bits
    ],
)
def test_wrong_options_say_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("account", *arguments, TAIL) in (1, 2)
    assert message in capsys.readouterr().err
