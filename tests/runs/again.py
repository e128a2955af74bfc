# SPDX-License-Identifier: Apache-2.0
"""Run failed tests once more, alone: `-m runs.again RECORD..`, for CI.

Each record (record.py) is that of a run of pytest that has ended. Its failed tests run in one
process, with the environment that they had. A test that passes then is forgiven: its name, and the
end of its first failure, go to standard output and to build/flaky.txt (docs/testing.md says what to
do with it). Exit status 1 when a test fails again or is not found. Nothing is run, and the status
is 1, too, when a run did not get to its end, left tests out, or failed without a failed test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

FLAKY = Path("build/flaky.txt")
ALONE = "passed when run alone: "
LIMIT_S = 1800  # for the failed tests of one record; when it is over, none of them is forgiven
N_LINES = 20  # kept of a failure
ALL_PASSED, SOME_FAILED = 0, 1  # exit status of pytest for a run that got to its end


def is_for_tests(name: str) -> bool:
    """Return whether a variable of the environment chooses what the tests run."""
    return name.startswith(("ETRACE_", "PYTHON")) or name.endswith("SAN_OPTIONS") or name == "PATH"


def main(paths: list[str]) -> int:
    """Run what failed once more; return the exit status."""
    known: dict[Path, dict[str, Any]] = {}
    for path in map(Path, paths):
        if not path.exists():
            hint = "; after `make pytest`: make test-again RUNS=pytest"
            return _give_up(path, f"there is no record of a run that got to its end{hint}")
        known[path] = json.loads(path.read_text())
        if why := _unforgivable(known[path]):
            return _give_up(path, why)
    if not any(record["failed"] for record in known.values()):
        return _give_up(*known, "no test failed; something else did")
    verdicts = [_run_alone(path, record) for path, record in known.items() if record["failed"]]
    return 0 if all(verdicts) else 1


def _unforgivable(record: dict[str, Any]) -> str:
    """Return why failures of a run cannot be forgiven; empty when they can."""
    if record["status"] not in {ALL_PASSED, SOME_FAILED}:
        return f"pytest ended with {record['status']}, not with failed tests"
    if (record["status"] == SOME_FAILED) != bool(record["failed"]):
        return "pytest ended with 1 and no test failed"
    if len(record["tests"]) < record["n_collected"]:
        return f"only {len(record['tests'])} of {record['n_collected']} tests ran"
    return ""


def _give_up(*why: object) -> int:
    print("test-again: nothing runs again:", *why, file=sys.stderr)
    return 1


def _run_alone(path: Path, record: dict[str, Any]) -> bool:
    """Run the failed tests of one record; report, and return whether all of them pass."""
    targets = {nodeid: _target(nodeid, each["when"]) for nodeid, each in record["failed"].items()}
    runnable = [target for target in dict.fromkeys(targets.values()) if _file(target).is_file()]
    print(f"test-again: {len(targets)} failed tests of {path}, alone", flush=True)
    outcomes = _outcomes(path.with_suffix(".again.json"), record, runnable) if runnable else {}
    failed_again = False
    for nodeid, target in targets.items():
        if _passed(target, outcomes):
            _forgive(path.stem, nodeid, record["failed"][nodeid]["lines"])
        else:
            failed_again = True
            print(f"failed again: {nodeid}", flush=True)
    return not failed_again


def _target(nodeid: str, when: str) -> str:
    """Return what to run for a failure: the test, or its whole file when a teardown failed.

    pytest blames what a fixture of the file finds at its end on whichever test was the last.
    """
    return nodeid.partition("::")[0] if when == "teardown" else nodeid


def _file(target: str) -> Path:
    return Path(target.partition("::")[0])


def _outcomes(second: Path, record: dict[str, Any], targets: list[str]) -> dict[str, str]:
    """Run tests in one process; return the outcome of each, none when pytest did not end well."""
    second.unlink(missing_ok=True)
    words = [f"--run-record={second}", "-m", record["markers"], *targets]
    environment = {k: v for k, v in os.environ.items() if not is_for_tests(k)}
    # -P: the installed etrace is tested, not the one in this directory
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pytest", "-n0", *words],
        env={**environment, **record["environment"]},
        start_new_session=True,
    )
    try:
        status = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"test-again: stopped after {LIMIT_S} s", file=sys.stderr)
        status = -1
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    found: dict[str, Any] = {"status": None}
    if second.exists():
        found = json.loads(second.read_text())
    if status not in {ALL_PASSED, SOME_FAILED} or status != found["status"]:
        return {}
    return {nodeid: outcome for nodeid, outcome, *_ in found["tests"]}


def _passed(target: str, outcomes: dict[str, str]) -> bool:
    """Return whether a test passed, or of a file or class some tests did and none failed."""
    if target in outcomes:
        return outcomes[target] == "passed"
    inside = {outcome for test, outcome in outcomes.items() if test.startswith(f"{target}::")}
    return "passed" in inside and "failed" not in inside


def _forgive(run: str, nodeid: str, lines: list[str]) -> None:
    FLAKY.parent.mkdir(exist_ok=True)
    name = f"{nodeid} (with sanitizers)" if run == "sanitize" else nodeid
    text = "".join(f"    {line}\n" for line in lines) + f"{ALONE}{name}\n"
    print(text, end="", flush=True)
    with FLAKY.open("a") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
