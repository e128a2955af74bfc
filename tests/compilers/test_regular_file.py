# SPDX-License-Identifier: Apache-2.0
"""Only regular files are opened, whatever a trace names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etrace.compilers.regular_file import read_head, read_regular


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(os.fsencode(path), 5) == b"12345"
    assert read_regular(os.fsencode(path), 4) is None
    assert read_head(os.fsencode(path), 2) == b"12"


def test_a_pipe_is_not_even_opened(tmp_path: Path) -> None:
    """Nor waited for, with nobody to write to it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert read_regular(os.fsencode(path), 5) is None
    assert read_head(os.fsencode(path), 5) == b""


@pytest.mark.parametrize(
    "name", [b"/dev/null", b"/proc/self/maps", b"/proc/version", b"/sys", b"/", b"/no/such", b"a\0"]
)
def test_nothing_else_is_read(name: bytes) -> None:
    assert read_regular(name, 1 << 20) is None
    assert read_head(name, 5) == b""
