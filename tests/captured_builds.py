# SPDX-License-Identifier: Apache-2.0
"""Databases of real commands, and of traces that tests/builders.py tells.

    image = capture_database(folder, ["sh", "-c", "ld -o prog main.o"])

captures, parses and opens; the database is `.nfsdb*` in `folder`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from backends import BACKENDS, capture
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.parse import parse_trace

TRACE = ".nfsdb"


def capture_database(folder: Path, command: Sequence[str | Path], cwd: Path) -> Image:
    """Run a command under the first backend; the test fails when it does."""
    captured = capture(BACKENDS[0], command, cwd, trace=folder / TRACE, env=dict(os.environ))
    assert captured.status == 0, captured.stderr.decode()
    return parse_database(folder)


def parse_database(folder: Path) -> Image:
    """Parse the trace in a folder and open its database."""
    parse_trace([folder / TRACE], folder / f"{TRACE}.json")
    return open_database(folder)


def told_database(folder: Path, trace: bytes) -> Image:
    """Write a trace and open its database."""
    (folder / TRACE).write_bytes(trace)
    return parse_database(folder)
