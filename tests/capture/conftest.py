# SPDX-License-Identifier: Apache-2.0
"""What tests of capture share: folders, the programs of tests/events, a fake machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root
from event_programs import build_programs
from fake_kernel import NOBODY, Machine, make_machine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a new empty folder; a trace and the like are beside it."""
    path = tmp_path.resolve() / "work"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def reachable() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="etrace-events-", dir="/tmp") as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="session")
def built(reachable: Path) -> Path:
    """Build the programs of tests/events as static binaries; return their folder."""
    build_programs(reachable / "static")
    return reachable / "static"


@pytest.fixture
def reachable_folder(reachable: Path) -> Iterator[Path]:
    """Return a new empty folder for one run."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=reachable) as name:
        path = Path(name) / "w"
        path.mkdir()
        yield path


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
