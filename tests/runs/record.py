# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: `--run-record FILE` keeps what failed and how long everything took.

The file is JSON, written whole at the end of the run: `status` (pytest's), `began` and `ended`
(Unix time, s), `markers` (of `-m`), `environment` (variables that choose what the tests run),
`n_collected`, `tests` (a row a test: node id, outcome, worker, then seconds of set-up, call and
teardown), `fixtures` (a row a fixture made: name, scope, worker, seconds without the fixtures that
it asks for), and `failed` (node id -> phase and last lines of its first failure). runs/again.py and
runs/minutes.py read it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from runs.again import N_LINES, is_for_tests

FIXTURES = "fixtures"  # name of the property that carries their times from a worker
PHASES = ("setup", "call", "teardown")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--run-record", type=Path, metavar="FILE", help="keep failures and times of this run"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--run-record")
    if path is None:
        return
    config.pluginmanager.register(FixtureClock(), "fixture-clock")
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist reports to its controller
        path.unlink(missing_ok=True)  # of the run before: this one may not get to its end
        config.pluginmanager.register(Recorder(path.absolute()), "run-recorder")


class FixtureClock:
    """Times fixtures where they are made, and sends the times along with the test's report."""

    def __init__(self) -> None:
        self._times: list[tuple[str, str, float]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        started = time.monotonic()
        try:
            return (yield)
        finally:
            spent = time.monotonic() - started
            self._times.append((fixturedef.argname, fixturedef.scope, round(spent, 3)))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        if report.when == "setup":
            report.user_properties.append((FIXTURES, self._times))
            self._times = []
        return report


@dataclass(slots=True)
class Row:
    """What the reports say of one test."""

    worker: str
    outcome: str = "passed"
    seconds: dict[str, float] = field(default_factory=dict)


class Recorder:
    """Gathers the reports of a run and writes the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = time.time()
        self._tests: dict[str, Row] = {}
        self._fixtures: list[list[Any]] = []
        self._failed: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worker = getattr(getattr(report, "node", None), "gateway", None)
        row = self._tests.setdefault(report.nodeid, Row(worker.id if worker else ""))
        row.seconds[report.when] = report.duration
        if report.outcome != "passed":
            row.outcome = report.outcome
        times: Any = dict(report.user_properties).get(FIXTURES, [])
        self._fixtures += [[name, scope, row.worker, s] for name, scope, s in times]
        if report.failed:
            self._note_failure(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note_failure(report)

    def _note_failure(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        lines = report.longreprtext.splitlines()[-N_LINES:]
        first = self._failed.setdefault(report.nodeid, {"when": report.when, "lines": lines})
        if report.when == "teardown":
            first["when"] = report.when

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        tests = [
            [nodeid, row.outcome, row.worker]
            + [round(row.seconds.get(phase, 0.0), 3) for phase in PHASES]
            for nodeid, row in self._tests.items()
        ]
        content = {
            "status": int(exitstatus),
            "began": self._began,
            "ended": time.time(),
            "markers": session.config.option.markexpr,
            "n_collected": session.testscollected,
            "environment": {k: v for k, v in os.environ.items() if is_for_tests(k)},
            "tests": tests,
            "fixtures": self._fixtures,
            "failed": self._failed,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(content))
        part.rename(self._path)
