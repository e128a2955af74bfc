# SPDX-License-Identifier: Apache-2.0
"""The Python side of the ptrace backend: arguments, progress lines, stats."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from etrace.capture import ptrace
from etrace.capture.backend import Options, Progress
from etrace.capture.kmod.system.owner import Owner


def test_options_become_arguments() -> None:
    options = Options(Path("/t"), Path("/s"), env=True, thread_names=True)
    assert ptrace.arguments(options, None) == [
        *("-o", "/t", "--stats", "/s", "--rotate", "/t.stats", "--rotate", "/t.rsp"),
        *("--rotate", "/t.accesses", "--rotate", "/t.hashes"),
        *("--response-files", "/t.rsp", "--env", "--thread-names"),
    ]
    given = Options("/t", "/s", summary=True, owner=Owner(7, 8, ()))
    assert ptrace.arguments(given, None)[-3:] == ["--owner", "7:8", "--summary"]
    assert ptrace.arguments(options, 9)[-2:] == ["--status-fd", "9"]


def test_a_progress_line_is_read() -> None:
    line = b'{"processes":3,"live":1,"executions":2,"opens":40,"bytes":5000}'
    assert ptrace.parse_progress(line) == Progress(3, 1, 2, 40, 5000)


@pytest.mark.parametrize("line", [b"", b"{", b"{}", b"[]", b"7"])
def test_a_line_that_is_not_progress_is_passed_over(line: bytes) -> None:
    assert ptrace.parse_progress(line) is None


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_unreadable_stats_are_empty(tmp_path: Path, content: str) -> None:
    path = tmp_path / "stats"
    path.write_text(content)
    assert ptrace.read_stats(path) == {}
    assert ptrace.read_stats(tmp_path / "none") == {}


def test_the_backend_works_on_this_machine() -> None:
    probe = ptrace.PtraceBackend().probe()
    assert probe.works, f"{probe.reason}; {probe.hint}"


def test_a_signal_is_handed_on_however_early_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when the command runs already, but the start of the tracer has not returned."""
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "never")
    start = ptrace._start

    def start_slowly(argv: list[str], status_fd: int | None) -> subprocess.Popen[bytes]:
        process = start(argv, status_fd)
        assert (tmp_path / "begun").read_text() == "begun\n"
        os.kill(os.getpid(), signal.SIGTERM)
        return process

    monkeypatch.setattr(ptrace, "_start", start_slowly)
    options = Options(tmp_path / "trace", tmp_path / "stats")
    script = f"echo begun > {tmp_path}/begun; exec cat {tmp_path}/never"
    outcome = ptrace.PtraceBackend().run(["sh", "-c", script], options, None)
    assert outcome.signal == signal.SIGTERM
