# SPDX-License-Identifier: Apache-2.0
"""Runs once more, alone, the tests that failed: `-m runs.again RECORD..`, for CI.

Each record (record.py) is of a run that has ended. Its failures run in one process with the same
environment. What passes then is forgiven: it is named, with the end of its first failure, on
standard output and in build/flaky.txt, and docs/testing.md says what becomes of it. Exit status 1
when a test fails again or is not found, and when nothing failed or a run did not get to its end:
then the cause is not a test, and nothing is forgiven.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
FLAKY = Path("build/flaky.txt")
ALONE = "passed when run alone: "
LIMIT_S = 1800  # for one record: more failures than that are not chance
ALL_PASSED, SOME_FAILED = 0, 1  # exit status of pytest for a run that got to its end


def main(paths: list[str]) -> int:
    """Run what failed once more; return the exit status."""
    records = {path: Path(path) for path in paths if not path.endswith(".again.json")}
    known = {path: json.loads(file.read_text()) for path, file in records.items() if file.exists()}
    for path in records:
        if path not in known:
            return _give_up(f"{path}: this run did not get to its end")
        if (status := known[path]["status"]) not in {ALL_PASSED, SOME_FAILED}:
            return _give_up(f"{path}: pytest ended with {status}, so not for a test that failed")
    if not any(record["failed"] for record in known.values()):
        return _give_up("no test failed; the cause is something else")
    verdicts = [
        _run_alone(records[path], record) for path, record in known.items() if record["failed"]
    ]
    return 0 if all(verdicts) else 1


def _give_up(why: str) -> int:
    print(f"again: nothing runs again: {why}", file=sys.stderr)
    return 1


def _run_alone(path: Path, record: dict[str, Any]) -> bool:
    """Run the failures of one record; report and return whether all of them pass."""
    failed: dict[str, list[str]] = record["failed"]
    second = path.with_suffix(".again.json")
    second.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-n0", f"--run-record={second}", *failed]
    print(f"again: {len(failed)} of {path} alone", flush=True)
    try:
        subprocess.run(
            command, env={**os.environ, **record["environment"]}, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"again: not at its end after {LIMIT_S} s", file=sys.stderr)
    found = json.loads(second.read_text()) if second.exists() else {"tests": [], "failed": {}}
    outcomes = {nodeid: outcome for nodeid, outcome, *_ in found["tests"]}
    again = [nodeid for nodeid in failed if not _passed(nodeid, outcomes)]
    for nodeid in failed.keys() - set(again):
        _forgive(nodeid, failed[nodeid])
    for nodeid in again:
        print(f"failed again: {nodeid}", flush=True)
    return not again


def _passed(nodeid: str, outcomes: dict[str, str]) -> bool:
    """Return whether a test passed; a file that could not be read counts by all its tests."""
    if "::" in nodeid:
        return outcomes.get(nodeid) == "passed"
    of_file = [outcome for test, outcome in outcomes.items() if test.startswith(f"{nodeid}::")]
    return bool(of_file) and "failed" not in of_file


def _forgive(nodeid: str, lines: list[str]) -> None:
    FLAKY.parent.mkdir(exist_ok=True)
    text = "".join(f"    {line}\n" for line in lines) + f"{ALONE}{nodeid}\n"
    print(text, end="", flush=True)
    with FLAKY.open("a") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
