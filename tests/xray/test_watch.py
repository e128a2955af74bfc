# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows while logs are read, and Ctrl-C in the middle."""

from __future__ import annotations

import gc
import io
import signal
import struct
import sys
from array import array
from pathlib import Path

import pytest
from libetrace.xray import account as native
from trying import until
from xray import samples
from xray.builder import LogBuilder

from etrace.cli.main import etrace
from etrace.cli.xray.options import Watch

LOG = samples.log("mt_pie19.fdr")


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Make standard error a terminal."""
    stream = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def wait_for(stream: io.StringIO, text: str) -> None:
    until(lambda: text in stream.getvalue())


def test_the_bytes_that_have_been_read_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    position = array("Q", [0, 0])
    with Watch(patience_seconds=0) as watch:
        watch.follow(position)
        wait_for(terminal, "open")
        position[0], position[1] = 30, 40
        wait_for(terminal, "75%")
        position[0] = 40
        wait_for(terminal, "work")
    assert "read" in terminal.getvalue()


def test_a_command_that_knows_better_is_shown_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with Watch(patience_seconds=0) as watch:
        wait_for(terminal, "open")
        watch.report("convert", 1, 4)
        wait_for(terminal, "25%")


def test_nothing_is_drawn_where_nobody_looks(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert etrace(["xray", "account", str(LOG), "-o", str(tmp_path / "out")]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["mt_pie19.fdr", "mt_pie19.basic"])
def test_an_account_says_how_far_it_is(name: str) -> None:
    data = samples.log(name).read_bytes()
    position = array("Q", [7, 7])
    native.account([data, data], position=position)
    assert list(position) == [2 * len(data), 2 * len(data)]
    with pytest.raises(ValueError, match="two numbers"):
        native.account(data, position=array("Q", [0]))


def test_ctrl_c_ends_an_account_in_the_middle() -> None:
    call = struct.pack("<4I", 1 << 4, 1, 1 << 4 | 1 << 1, 1)  # enter 1, exit 1
    log = LogBuilder().thread(1).cpu(0, 0).raw(call * 10_000_000).build()
    position = array("Q", [0, 0])
    old = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    gc.disable()  # hypothesis has Python called by it, where the signal would be lost
    try:
        # of processor time; all of it takes 0.2 s
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            native.account(log, position=position, percentiles=False)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
        gc.enable()
    assert 0 < position[0] < position[1]
