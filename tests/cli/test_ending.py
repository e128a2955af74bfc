# SPDX-License-Identifier: Apache-2.0
"""How programs end when their output has nowhere to go: a message and a status of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent
FULL = (
    "{}: error: standard output: No space left on device\n"
    "  hint: free some space, or choose another place for the output\n"
)


def environment() -> dict[str, str]:
    """Return an environment in which Python buffers its output, as it does for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
@pytest.mark.parametrize("program", ["cas", "etrace", "etrace_parser"])
def test_what_a_full_device_refused_is_said_once(program: str, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([PROGRAMS / program, *words], stdout=full, stderr=subprocess.PIPE,
                              env=environment(), text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (2, FULL.format(program))


def test_a_command_on_a_full_device_does_not_end_with_the_status_of_python() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([PROGRAMS / "etrace", "doctor"], stdout=full, stderr=subprocess.PIPE,
                              env=environment(), text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (2, FULL.format("etrace"))


def test_nobody_reads_the_help() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PROGRAMS / "etrace", "--help"], stdout=writer, stderr=subprocess.PIPE,
                          env=environment(), text=True, check=False)  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
