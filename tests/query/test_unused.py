# SPDX-License-Identifier: Apache-2.0
"""Sources that a build never read."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from captured_builds import told_database

from etrace.errors import EtraceError
from etrace.query.unused import unused

CC = 1 << 22 | 9


def test_files_that_were_neither_read_nor_written_nor_run_are_listed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in (
        "read.c",
        "made.o",
        "tool",
        "old/dead.c",
        "dead.h",
        ".git/config",
        ".nfsdb.img",
        "real.h",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "link.h").symlink_to("real.h")
    (tree / "gone.h").symlink_to("nowhere")
    t = TraceBuilder(str(tree)).exec(CC, str(tree / "tool"), ["tool"])
    t.use(CC, str(tree / "read.c")).use(CC, str(tree / "real.h"), original=str(tree / "link.h"))
    t.use(CC, str(tree / "made.o"), flags=O_WRONLY | O_CREAT).exit(CC)
    image = told_database(tmp_path, t.trace())
    found = [str(tree / name).encode() for name in ("dead.h", "old/dead.c")]
    assert unused(image, tree) == found
    assert unused(image, tree / "old" / ".." / "old") == found[1:]
    with pytest.raises(EtraceError, match="not a directory"):
        unused(image, tree / "read.c")
