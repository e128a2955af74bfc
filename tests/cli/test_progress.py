# SPDX-License-Identifier: Apache-2.0
"""Progress bars: on a terminal after a while, nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from etrace.cli.terminal.progress import progress


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, patience: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress(patience_seconds=patience) as update:
        for done in range(5):
            update("counting", done, 5)
    return stream.getvalue()


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "counting" in drawn(FakeTerminal(), monkeypatch, 0.0)


def test_what_is_soon_over_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(FakeTerminal(), monkeypatch, 60.0) == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(io.StringIO(), monkeypatch, 0.0) == ""
