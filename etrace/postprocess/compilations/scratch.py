# SPDX-License-Identifier: Apache-2.0
"""Runs programs of a trace where they can do no harm: compilers that answer a question.

An empty scratch directory that is removed again, an environment of four variables, no standard
input, a time limit for the program and all that it started. trusted.py decides which programs may
run. Nothing else in etrace runs programs that a trace names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, NamedTuple

TIMEOUT_SECONDS = 20.0
MAX_BYTES = 1 << 20
#: clang 16 and later read a configuration named after their target, which may load plugins
NO_CONFIG = {"CLANG_NO_DEFAULT_CONFIG": "1"}


class Ended(NamedTuple):
    """How a program ended and what it printed, at most MAX_BYTES of each."""

    status: int
    stdout: bytes
    stderr: bytes


def run_in_scratch(
    command: Sequence[bytes], timeout_seconds: float = TIMEOUT_SECONDS
) -> Ended | None:
    """Run a command and return how it ended; None when it could not run or took too long."""
    with (
        tempfile.TemporaryDirectory(prefix="etrace-scratch-") as scratch,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        status = _run(command, scratch, (stdout, stderr), timeout_seconds)
        if status is None:
            return None
        for stream in (stdout, stderr):
            stream.seek(0)
        return Ended(status, stdout.read(MAX_BYTES), stderr.read(MAX_BYTES))


def _run(
    command: Sequence[bytes],
    scratch: str,
    outputs: tuple[IO[bytes], IO[bytes]],
    timeout_seconds: float,
) -> int | None:
    """Run a command to its end and return its status; everything that it started ends with it."""
    try:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": scratch, **NO_CONFIG},
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    try:
        return process.wait(timeout_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
