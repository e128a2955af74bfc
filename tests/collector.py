# SPDX-License-Identifier: Apache-2.0
"""etrace_cat under test: where it is, how it is run and what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from backends import need_tool

VARIABLE = "ETRACE_CAT"
TOP = Path(__file__).parents[1]


def program() -> Path:
    """Return etrace_cat; a missing one fails the test with what to do about it."""
    named = os.environ.get(VARIABLE)
    installed = Path(sysconfig.get_path("platlib")) / "etrace" / "libexec" / "etrace_cat"
    path = Path(named) if named else installed
    if not path.is_file():
        pytest.fail(f"{path} is missing: run `make build`, or set {VARIABLE} to a build")
    return path


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run left: status, output, messages and the stats."""

    status: int
    text: bytes
    messages: str
    stats: dict[str, Any]


def replay(instance: Path, *options: str | Path) -> Collected:
    """Print a saved instance."""
    return collect("--raw", instance, *options)


def collect(*options: str | Path, pass_fds: Sequence[int] = ()) -> Collected:
    """Run etrace_cat to its end."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as stats:
        try:
            done = subprocess.run(
                [program(), "--stats-fd", str(write_end), *options],
                capture_output=True,
                check=False,
                pass_fds=[write_end, *pass_fds],
                timeout=120,
            )
        finally:
            os.close(write_end)
        text = stats.read()
    counters = json.loads(text) if text else {}
    return Collected(done.returncode, done.stdout, done.stderr.decode(), counters)


def build(folder: Path, defines: list[str], libraries: list[str]) -> Path:
    """Build etrace_cat in `folder` and return it."""
    out = folder / "etrace_cat"
    parts = ["collect", "format", "common"]
    sources = [path for part in parts for path in sorted((TOP / "native" / part).glob("*.c"))]
    includes = [*(f"-I{TOP}/native/{part}" for part in parts), f"-I{TOP}/kmod/include"]
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", '-DETRACE_VERSION="test"', *defines,
         *includes, *sources, "-o", out, *libraries],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n(apt-get install gcc libzstd-dev)"
    return out


def decompressed(path: Path) -> bytes:
    """Return what a file of zstd frames holds."""
    done = subprocess.run(
        [need_tool("zstd", "zstd"), "-dc", path], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
