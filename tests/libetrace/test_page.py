# SPDX-License-Identifier: Apache-2.0
"""docs/libetrace.md: its examples say what they do, on the Lua build."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import libetrace
import pytest
from databases import write_processed_lua
from libetrace.select.conditions import EXECUTION_CONDITIONS, OPEN_CONDITIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libetrace.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_processed_lua(tmp_path))
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 30
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert results.failed == 0, "".join(report)


def test_the_page_names_every_condition() -> None:
    text = PAGE.read_text()
    spelled = {
        f"{prefix}_{test}" for prefix in ("bin", "cwd", "cmd") for test in ("has_str", "wc", "re")
    }
    spelled |= {f"{p}_{n}at_source_root" for p in ("bin", "cwd") for n in ("", "not_")}
    ancestors = re.compile(r"(\w+_)?(contains_path|has_string|has_str|matches_wc|matches_re)")
    for name in {*OPEN_CONDITIONS, *EXECUTION_CONDITIONS} - spelled:
        assert f"`{name}`" in text or ancestors.fullmatch(name), name


def test_every_public_name_is_a_class_or_function_of_the_library() -> None:
    assert {"error", "nfsdb"} < set(libetrace.__all__)
    assert [name for name in libetrace.__all__ if not callable(getattr(libetrace, name))] == []
