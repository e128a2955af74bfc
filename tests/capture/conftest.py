# SPDX-License-Identifier: Apache-2.0
"""What tests of the kernel module's control share: a fake machine, a directory of a user."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import NOBODY, Machine, make_machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine with a kernel module to be loaded."""
    need_root()
    made = make_machine(tmp_path / "machine")
    yield made
    made.end_collectors()


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that belongs to an ordinary user."""
    path = Path(tempfile.mkdtemp(prefix="etrace-test-"))
    os.chown(path, NOBODY.uid, NOBODY.gid)
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
