# SPDX-License-Identifier: Apache-2.0
"""Which calls a report is about: threads and times."""

from __future__ import annotations

import pytest
from xray.samples import TAIL, run, session

from etrace.errors import EtraceError
from etrace.xray.account import account
from etrace.xray.session import Selection, parse_time


def test_a_thread_is_chosen_by_its_number() -> None:
    report = account(session("mt_pie19.fdr", selection=Selection(threads=[25445])))
    assert report.n_calls == 72
    assert account(session("mt_pie19.fdr")).n_calls == 361


@pytest.mark.parametrize(
    ("text", "ns"), [("1.5ms", 1_500_000), ("3", 3 * 10**9), ("0.25us", 250), ("7ns", 7)]
)
def test_times_have_units(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "1 h", "-1", "1,5ms"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(EtraceError, match="is not a time"):
        parse_time(text)


@pytest.mark.parametrize("option", ["--from", "--until", "--min-duration"])
def test_times_beyond_any_log_are_no_error(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", option, "99999999999999999s", TAIL) == 0
    n_rows = len(capsys.readouterr().out.splitlines()) - 1
    assert n_rows == (7 if option == "--until" else 0)


def test_a_number_that_no_thread_has_chooses_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "-t", str(25744 + 2**32), TAIL) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
