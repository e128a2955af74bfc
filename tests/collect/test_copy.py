# SPDX-License-Identifier: Apache-2.0
"""The plain cat of seed 001: text in, the same text out, until the end or a signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from collect.collector import collect, program

TEXT = b"1,0,2,3!Close|fd=4\n1,0,2,4!FN|/a\n" * 20_000


def test_a_file_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "trace_pipe"
    path.write_bytes(TEXT + b"no newline at the end")
    done = collect(path)
    assert (done.status, done.messages) == (0, "")
    assert done.text == TEXT + b"no newline at the end"


def test_no_message_goes_into_the_copy_where_a_stream_is_closed(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    assert "none/stats" in collect("--stats", "none/stats", tmp_path / "text").messages
    for n, closed in enumerate(("2>&-", "<&- >&- 2>&-")):
        command = f"{program()} -o {n} --stats none/stats text {closed}"
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False)
        assert (tmp_path / str(n)).read_bytes() == TEXT


def test_a_pipe_is_copied_until_a_signal(tmp_path: Path) -> None:
    fifo = tmp_path / "trace_pipe"
    os.mkfifo(fifo)
    with (
        subprocess.Popen([program(), fifo], stdout=subprocess.PIPE) as process,
        fifo.open("wb", buffering=0) as pipe,
    ):
        pipe.write(b"one\ntwo\n")
        assert process.stdout
        assert process.stdout.readline() == b"one\n"
        pipe.write(b"three\n")
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b"two\nthree\n"
    assert process.returncode == 0


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    done = collect(tmp_path / "nothing")
    assert done.status == 125
    assert f"cannot open '{tmp_path}/nothing'" in done.messages


def test_wrong_usage_has_status_2(tmp_path: Path) -> None:
    for words in (["a", "b"], ["--raw", str(tmp_path), "b"], ["--nonsense"]):
        done = subprocess.run([program(), *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage: etrace_cat" in done.stderr


def test_help_explains_every_option_of_the_usage() -> None:
    done = subprocess.run([program(), "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    usage, _, explained = done.stdout.partition("\n\n")
    options = set(re.findall(r"--[a-z-]+", usage))
    assert len(options) >= 12
    assert options <= set(re.findall(r"--[a-z-]+", explained))
