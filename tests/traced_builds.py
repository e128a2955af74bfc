# SPDX-License-Identifier: Apache-2.0
"""Builds that are traced, for the tests of etrace check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from etrace.check.find import Result, check
from etrace.nfsdb.store import open_database

BIN = Path(sys.executable).parent
#: `cas parse` and `cas pp` in one process
MAKE_DATABASE = [
    sys.executable, "-c",
    "import sys; from etrace.cli.main import cas; sys.exit(cas(['parse']) or cas(['pp']))",
]  # fmt: skip


def trace(
    tree: Path, command: str, sources: Mapping[str, str], *, fails: bool = False, env: bool = True
) -> Path:
    """Trace a command in a tree with these files, with or without `--env`; return the tree."""
    for name, text in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    run = [str(BIN / "etrace"), "run", *["--env"] * env, "--backend", "ptrace", "-q", "--"]
    for words, is_failing in (([*run, "sh", "-c", command], fails), ([*MAKE_DATABASE], False)):
        done = subprocess.run(words, cwd=tree, env=environment, check=False, capture_output=True)
        assert (done.returncode != 0) == is_failing, done.stderr
    return tree


def forget_rules(tree: Path) -> Path:
    """Make the database of a tree without rules: `etrace check` asks for them now."""
    subprocess.run([BIN / "cas", "pp", "--no-rules"], cwd=tree, check=True, capture_output=True)
    return tree


def found(tree: Path, **options: bool) -> Result:
    """Check the build of a tree."""
    return check(open_database(tree), **options)


def keys(tree: Path, **options: bool) -> list[str]:
    """Return the faults of a tree as lines."""
    return [fault.key for fault in found(tree, **options).faults]


def make(tree: Path, *words: str) -> int:
    """Run make and return its status."""
    done = subprocess.run(["make", *words], cwd=tree, capture_output=True, check=False)
    return done.returncode
