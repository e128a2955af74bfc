# SPDX-License-Identifier: Apache-2.0
"""`etrace critical-path` and `etrace timeline`: what they print and write."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import ANY

import pytest
from databases import database_of
from timing.builds import MAKE, Story, two_objects_and_a_link

from etrace.cli.etrace import critical_path
from etrace.cli.main import etrace

HEAD = "critical path at least 0.001 s, elapsed 0.001 s, elapsed / critical path at most 1.3"


#: the database has no mark of this user's capture
WHY = (
    "the path is a lower bound: the rules of make prog are not known: no mark shows that you"
    " captured this build on this machine"
)


@pytest.fixture
def build(tmp_path: Path) -> str:
    """Directory of the database of two compilations and a link."""
    database_of(tmp_path, two_objects_and_a_link())
    return str(tmp_path)


def test_the_path_is_a_table(build: str, capsys: pytest.CaptureFixture[str]) -> None:
    slot = "blocked by job slot 0.000 s"
    assert etrace(["critical-path", build]) == 0
    assert capsys.readouterr().out.splitlines() == [
        HEAD,
        WHY,
        "",
        f"    of it   share   steps  {'program':<18}  in",
        f"  0.001 s   65.9%       1  {'gcc':<18}  make prog",
        f"  0.000 s   22.0%       1  {'ld':<18}  make prog",
        f"  0.000 s   12.1%       2  {'make':<18}  make prog",
        "",
        f"    start       work        CPU  {'command':<36}  waited for",
        f"  0.000 s    0.000 s          -  {'make prog':<36}  blocked by child 0.001 s",
        f"  0.000 s    0.001 s          -  {'gcc b.c':<36}  its parent; {slot}",
        f"  0.001 s    0.000 s          -  {'ld prog':<36}  b.o",
        f"  0.001 s    0.000 s          -  {'make prog':<36}  its child",
        "",
        "    slack       work  longest commands that are not on the path",
        "  0.000 s    0.000 s  gcc a.c",
    ]


def test_short_groups_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    for n, name in enumerate(("cp", "mv", "gcc")):
        end = n + 1 if n < 2 else 10_000
        story.job(
            MAKE, (n + 2) << 22 | (n + 2), (n, end), [name, "a", "b"], ("/src/a",), ("/src/a",)
        )
    story.at(10_000).exit(MAKE)
    database_of(tmp_path, story.builder.trace())
    assert etrace(["critical-path", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[3:6] == [
        f"    of it   share   steps  {'program':<18}  in",
        f"  0.010 s  100.0%       1  {'gcc':<18}  make",
        "  0.000 s    0.0%       2  others",
    ]
    assert etrace(["critical-path", "--all-steps", str(tmp_path)]) == 0
    assert "others" not in capsys.readouterr().out


def test_the_path_as_json(build: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(["critical-path", "--json", "--jobs", "2", build]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["critical_path_ns"], record["elapsed_ns"]) == ("910000", "1210000")
    assert record["is_lower_bound"]
    assert record["unknown"] == [{"pid": 1 << 22 | 1, "idx": 1, "name": "make prog", "why": ANY}]
    assert record["steps"][1] == {
        "pid": 3 << 22 | 3, "idx": 1, "name": "gcc b.c", "start_ns": "400000", "end_ns": "1000000",
        "work_ns": "600000", "elapsed_ns": "600000", "cpu_ns": None, "after": "fork", "file": None,
        "blocked": [{"by": "job slot", "time_ns": "300000"}],
    }  # fmt: skip
    assert record["groups"][0] == {
        "phase": "make prog", "phase_began": {"pid": 1 << 22 | 1, "idx": 1}, "program": "gcc",
        "n_steps": 1, "path_ns": "600000",
    }  # fmt: skip
    assert record["prediction"] == {
        "traced_ns": "1210000", "traced_jobs": 1, "traced_processors": None,
        "simulated_ns": "1210000", "n_jobs": 2, "n_processors": None, "ordered_ns": "910000",
        "free_ns": "910000", "n_executions": 4, "n_unknown": 4, "most_ns": "1210000",
        "explained_ns": "1210000",
        "predicted_ns": "910000", "predicted_most_ns": "1210000",
    }  # fmt: skip


def test_a_prediction(build: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(["critical-path", "--what-if", "gcc=0.5", "--dbdir", build]) == 0
    assert capsys.readouterr().out.splitlines() == [
        HEAD,
        WHY,
        "",
        "traced                      0.001 s  1 job at once",
        "the same, simulated         0.001 s  without waits for a processor",
        "predicted                   0.001 s  -37%",
        "by dependencies alone       0.001 s  no shorter than make's order",
        "the CPU time of 4 of 4 executions is unknown: their elapsed time counts",
    ]


def test_a_prediction_from_a_busy_machine_says_so(
    build: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critical_path, "BUSY", 0.5)
    assert etrace(["critical-path", "--what-if", "gcc=0.5", "--dbdir", build]) == 0
    out = capsys.readouterr().out
    assert "predicted                   0.001 s  -37% of the simulated one\n" in out
    assert "the build took much longer than its commands explain: trace it on a quiet" in out


def test_processors_of_jobs_are_asked_for_or_those_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight compilers of 100 us each."""
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    for n in range(8):
        upid = (n + 2) << 22 | (n + 2)
        story.at(100 * n).fork(MAKE, upid).exec(upid, "/usr/bin/cc", ["cc"])
        story.at(100 * n + 100).usage(upid, 100_000, 0, 4096, 1, 1, 0, 1).exit(upid)
    story.at(800).exit(MAKE)
    database_of(tmp_path, story.builder.trace())

    def ordered_us(*options: str) -> int:
        assert (
            etrace(["critical-path", "--json", "--what-if-jobs", "8", *options, str(tmp_path)]) == 0
        )
        return int(json.loads(capsys.readouterr().out)["prediction"]["ordered_ns"]) // 1000

    assert ordered_us() == 100
    assert ordered_us("--what-if-processors", "2") == 400
    monkeypatch.setattr(critical_path, "is_captured", lambda _: True)
    monkeypatch.setattr(critical_path, "machine_processors", lambda: 4)
    assert ordered_us() == 200
    assert etrace(["critical-path", "--what-if-processors", "2", str(tmp_path)]) == 2
    assert "without --what-if-jobs" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["cc1", "=2", "cc1=", "cc1=-1", "cc1=nan", "cc1=inf"])
def test_a_factor_is_a_number(build: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        etrace(["critical-path", "--what-if", text, build])
    assert ended.value.code == 2
    assert "is not PROGRAM=FACTOR, for example cc1=0.5" in capsys.readouterr().err


def test_a_timeline_appears_as_a_file(build: str, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    assert etrace(["timeline", build, "--lanes", "packed", "-o", str(target)]) == 0
    events = json.loads(target.read_bytes())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["gcc a.c", "gcc b.c", "ld prog"]


@pytest.mark.parametrize("name", ["critical-path", "timeline"])
def test_two_databases_are_refused(
    build: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace([name, build, "--dbdir", build]) == 2
    assert "two databases are given" in capsys.readouterr().err
