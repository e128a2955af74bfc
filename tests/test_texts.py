# SPDX-License-Identifier: Apache-2.0
"""Cells of CSV that a spreadsheet would take for formulas."""

from __future__ import annotations

import argparse
import io
from types import SimpleNamespace
from typing import Any

import pytest

from etrace.cli.xray import account, programs
from etrace.texts import CsvWriter, csv_cell
from etrace.xray.convert import records

FORMULA = "=HYPERLINK(A1)"


@pytest.mark.parametrize(
    "text",
    [
        FORMULA,
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "-O2",
        "--x",
        "\uff1d1",
        "-",
        "+",
    ],
)
def test_a_cell_is_no_formula(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "value",
    ["", "a=1", "/x", "-5", "+5", "-1.5", "-1e-05", "1.000000e-03", "-.5", "'=1", -5, -1.5, None,
     True],
)  # fmt: skip
def test_numbers_and_other_texts_are_cells_as_they_are(value: Any) -> None:
    assert csv_cell(value) is value


def test_a_row_is_quoted_where_it_must_be() -> None:
    text = io.StringIO()
    CsvWriter(text).write(["=1,2", 'a"b', -5, None])
    assert text.getvalue() == '"\'=1,2","a""b",-5,\n'


class Fakes:
    """What the writers of XRay ask: names that would be formulas."""

    clock = SimpleNamespace(seconds=lambda value: -value, ns=lambda value: value)
    names = SimpleNamespace(place=lambda _: "@x.c:1")
    first_tsc = 0


def test_an_account_has_no_formulas() -> None:
    row = SimpleNamespace(
        function=1, count=2, minimum=1.0, median=1.0, percentile_90=1.0, percentile_99=1.0,
        maximum=1.0, total=1.0, self_total=1.0, name="-[Foo bar]", process=1, thread=2,
    )  # fmt: skip
    report: Any = SimpleNamespace(rows=[row], clock=Fakes.clock)
    (text,) = account._account_csv(report, Fakes, False)  # type: ignore[arg-type]
    assert "'@x.c:1,'-[Foo bar],-1.000000e+00," in text
    assert ",-1.000000e+00,-1.000000e+00" in text


def test_stacks_have_no_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"stack": [FORMULA, "b"], "count": 1, "total_ns": 2, "self_ns": -3}
    monkeypatch.setattr(account, "_object", lambda *_: row)
    stacks: Any = SimpleNamespace(top=lambda *_: [None])
    text = account._stack_csv([stacks], argparse.Namespace(by="count", top=1), Fakes)  # type: ignore[arg-type]
    assert text.splitlines()[1] == f"1,2,-3,,,'{FORMULA};b"


def test_a_map_of_functions_has_no_formulas() -> None:
    (text,) = programs._extract_csv([{"id": -1, "name": FORMULA}, {"id": 2, "name": "f"}])
    assert text == f"id,name\n-1,'{FORMULA}\n2,f\n"


def test_records_have_no_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_object", lambda *_: {"function": FORMULA, "tsc": -1})
    row: Any = SimpleNamespace(arguments=(), kind=records.FIRST_EVENT, data=b"+1-1")
    text = "".join(records._csv(Fakes, iter([row])))  # type: ignore[arg-type]
    assert text.splitlines()[1] == f",-1,,,,,,'{FORMULA},,,'+1-1"
