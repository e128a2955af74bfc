# SPDX-License-Identifier: Apache-2.0
"""A running etraced on a fake machine, and a directory of an ordinary user."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import NOBODY, make_machine
from service.host import Service


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that belongs to an ordinary user."""
    need_root()
    path = Path(tempfile.mkdtemp(prefix="etrace-test-"))
    os.chown(path, NOBODY.uid, NOBODY.gid)
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def service(tmp_path: Path, public: Path) -> Iterator[Service]:
    """An etraced that listens in `public`, and whose module is loaded."""
    machine = make_machine(tmp_path / "machine")
    machine.modules.loaded = True
    made = Service(machine, public / "socket")
    made.start()
    yield made
    if made.process.exitcode is None:
        made.stop(signal.SIGKILL)
    machine.end_collectors()
