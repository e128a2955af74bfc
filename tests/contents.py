# SPDX-License-Identifier: Apache-2.0
"""Commands that are traced in a folder, and what the files there were made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent


def trace(
    folder: Path, backend: str, *command: str | Path, mounts: bool = False, **variables: str
) -> None:
    """Trace a command in a folder and make the database."""
    environment = {**os.environ, **variables}
    options = ["--no-usage", *(["--mounts"] if mounts else [])]
    steps: list[list[str | Path]] = [
        [BIN / "etrace", "run", "-q", *options, "--backend", backend, "--", *command],
        [BIN / "cas", "parse"],
        [BIN / "cas", "pp"],
    ]
    for words in steps:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (words, done.stderr)


def made_from(folder: Path, name: str) -> set[str]:
    """Return the files of the folder that a file was made from, relative to it."""
    done = subprocess.run(
        [BIN / "cas", "deps", "--all", folder / name], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode <= 1, done.stderr  # 1: of nothing
    start = os.fsencode(folder) + b"/"
    return {
        os.fsdecode(line.removeprefix(start))
        for line in done.stdout.splitlines()
        if line.startswith(start)
    }
