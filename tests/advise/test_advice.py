# SPDX-License-Identifier: Apache-2.0
"""The noise, the error, the order of findings, and what `etrace advise` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from advise.stories import MS, Seconds, image_of

from etrace.advise.build import Build
from etrace.advise.finding import Gain
from etrace.advise.rules import RULES
from etrace.cli.main import etrace

DOCS = Path(__file__).resolve().parents[2] / "docs" / "advice.md"


def sleeping(ms: int) -> Seconds:
    """Make a build of 10 s that sleeps for so long."""
    story = Seconds()
    story.run((0, ms), "sleep", "1")
    story.run((ms, 10_000), "sed", "s/a/b/", writes=("/src/b",))
    story.end(10_000)
    return story


def test_a_gain_below_the_noise_is_none(tmp_path: Path) -> None:
    build = Build(image_of(tmp_path, sleeping(150)))
    sleep = [row for row in range(len(build.by_time)) if build.program(row) == b"sleep"]
    assert build.noise_ns == 200 * MS
    assert build.gain(dict.fromkeys(sleep, 0.0)) is None


def test_the_error_is_a_tenth_and_what_the_rule_adds(tmp_path: Path) -> None:
    build = Build(image_of(tmp_path, sleeping(1000)))
    sleep = [row for row in range(len(build.by_time)) if build.program(row) == b"sleep"]
    expected = Gain(1000 * MS, 300 * MS, 10_000 * MS)
    assert build.gain(dict.fromkeys(sleep, 0.0), error=0.2) == expected
    assert expected.share == 0.1


def test_a_quiet_build_has_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image_of(tmp_path, sleeping(100))
    assert etrace(["advise", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "no finding that gains 0.200 s or more of 10.000 s\n"


def test_findings_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    image_of(tmp_path, sleeping(1000))
    assert etrace(["advise", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "1 sleep of 1.000 s  [sleeps]",
        "  gains 1.000 s of 10.000 s (10%), give or take 0.100 s",
        "  Started by make.",
        "      1.000 s  sleep 1",
    ]
    assert lines[-1].startswith("  certain: a sleep uses no processor")


def test_findings_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image_of(tmp_path, sleeping(1000))
    assert etrace(["advise", "--json", str(tmp_path)]) == 0
    record = json.loads(capsys.readouterr().out)
    (found,) = record.pop("findings")
    assert record == {
        "elapsed_ns": "10000000000", "simulated_ns": "10000000000", "noise_ns": "200000000",
    }  # fmt: skip
    assert found["gain"] == {
        "time_ns": "1000000000", "error_ns": "100000000", "share": 0.1, "is_bound": False,
        "when": "",
    }  # fmt: skip
    assert found["evidence"] == [
        {"text": "sleep 1", "time_ns": "1000000000", "pid": 2 << 22 | 2, "idx": 1, "file": None}
    ]


def test_every_id_is_documented_once() -> None:
    known = [name for names, _ in RULES for name in names]
    assert len(set(known)) == len(known)
    table = DOCS.read_text().partition("## Findings")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE) == known
