# SPDX-License-Identifier: Apache-2.0
"""A log and the execution that wrote it: a real program traced by `etrace run`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from libetrace.image.file import Image
from xray import samples

from etrace import xray
from etrace.cli.main import etrace
from etrace.nfsdb.store import open_database
from etrace.xray.join import Evidence, join, offset_ns

TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run an instrumented program twice below a shell, traced; return the directory."""
    place = tmp_path_factory.mktemp("join")
    program = samples.program("rec_nopie19")
    log = "patch_premain=true xray_mode=xray-fdr xray_logfile_base=log."
    script = f"XRAY_OPTIONS='{log}' {program}; {program}; true"
    command: list[str | Path] = [TOOLS / "etrace", "run", "--quiet", "--", "sh", "-c", script]
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([TOOLS / "cas", "parse"], cwd=place, check=True, stderr=subprocess.DEVNULL)
    return place


@pytest.fixture
def image(traced: Path) -> Image:
    return open_database(traced)


@pytest.fixture
def log(traced: Path) -> Path:
    (path,) = traced.glob("log.*")
    return path


def test_who_wrote_the_file_is_known(image: Image, log: Path) -> None:
    read = xray.read(log)
    found = join(image, read)
    assert found.execution is not None
    assert found.evidence is Evidence.FILE
    assert found.execution.binary == os.fspath(samples.program("rec_nopie19"))
    assert found.execution.pid == read.threads[0].process


def test_a_log_that_was_moved_is_joined_by_process_and_time(
    image: Image, log: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.copy(log, moved)
    found = join(image, xray.read(moved))
    assert found.execution is not None
    assert found.evidence is Evidence.PROCESS
    assert found.execution == join(image, xray.read(log)).execution


def test_a_timeline_has_the_calls_inside_the_execution(
    traced: Path, log: Path, tmp_path: Path
) -> None:
    program, target = os.fspath(samples.program("rec_nopie19")), tmp_path / "out.json"
    words = ["--lanes", "packed", "--xray", str(log), "-m", program, "-o", str(target)]
    assert etrace(["timeline", str(traced), *words]) == 0
    events = json.loads(target.read_bytes())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    calls = [e for e in slices if e["cat"] == "xray"]
    assert len(calls) == len(xray.read(log).calls()["start"])
    assert calls[0]["name"] == "main"
    process = xray.read(log).threads[0].process
    (outer,) = [e for e in slices if e["args"].get("pid") == process]
    for call in calls:
        assert call["tid"] == outer["tid"]
        assert outer["ts"] <= call["ts"]
        assert call["ts"] + call["dur"] <= outer["ts"] + outer["dur"] + 0.001


def test_a_log_of_no_execution_is_left_out_of_a_timeline(
    traced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--xray", samples.MT, "-o", str(tmp_path / "out.json")]
    assert etrace(["timeline", str(traced), *words]) == 0
    said = capsys.readouterr().err
    assert f"etrace timeline: warning: {samples.MT} is left out: no process " in said


def test_calls_lie_inside_their_execution(image: Image, log: Path) -> None:
    read = xray.read(log)
    found, move = join(image, read).execution, offset_ns(image, read)
    assert found is not None
    assert move is not None
    calls, clock = read.calls(), read.clock()
    first = min(calls["start"])
    ends = [clock.ns(s + t - first) for s, t in zip(calls["start"], calls["ticks"], strict=True)]
    assert found.start_ns <= move
    assert move + max(ends) <= found.start_ns + found.elapsed_ns + 1_000_000


def test_a_log_of_another_process_is_not_joined_and_it_says_why(image: Image) -> None:
    found = join(image, xray.read(samples.log("rec_nopie19.fdr")))
    assert found.execution is None
    assert "process 25341" in found.reason


def test_a_log_written_under_another_process_id_is_reported(
    image: Image, log: Path, tmp_path: Path
) -> None:
    """As in a container, whose process ids are not those of the trace."""
    data = bytearray(log.read_bytes())
    pid = xray.read(log).threads[0].process.to_bytes(4, "little")
    data = data.replace(b"\x13" + pid, b"\x13" + (7).to_bytes(4, "little"))
    kept = log.read_bytes()
    try:
        log.write_bytes(data)
        found = join(image, xray.read(log))
    finally:
        log.write_bytes(kept)
    assert found.execution is None
    assert "PID namespace" in found.reason


def test_the_command_prints_it(traced: Path, log: Path) -> None:
    command: list[str | Path] = [TOOLS / "etrace", "xray", "join", log, "--nfsdb", traced]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rec_nopie19" in done.stdout
    assert "it wrote the log file" in done.stdout
    other = subprocess.run(
        [*command[:3], samples.log("rec_nopie19.fdr"), "--nfsdb", traced],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (other.returncode, "not joined" in other.stdout) == (1, True)


def test_a_log_from_a_pipe_is_put_on_the_timeline(traced: Path, log: Path) -> None:
    command: list[str | Path] = [TOOLS / "etrace", "xray", "join", "--format", "chrome", "-"]
    done = subprocess.run(
        [*command, "--nfsdb", traced], input=log.read_bytes(), capture_output=True, check=True
    )
    events = json.loads(done.stdout)["traceEvents"]
    assert {event["cat"] for event in events if event["ph"] == "X"} == {"execution", "xray"}


def test_a_folder_without_a_database_is_an_error_that_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = samples.log("tail_pie19.fdr")
    assert etrace(["xray", "join", str(log), "--nfsdb", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--db DIR" in said
