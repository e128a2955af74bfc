# SPDX-License-Identifier: Apache-2.0
"""Where a capture's files go."""

from __future__ import annotations

from pathlib import Path

import pytest

from etrace.capture import session
from etrace.errors import CaptureError


def test_a_directory_is_made(tmp_path: Path) -> None:
    trace, stats, aside = session.prepare(tmp_path / "a" / "b")
    assert trace == tmp_path / "a" / "b" / ".nfsdb"
    assert stats == tmp_path / "a" / "b" / ".nfsdb.stats"
    assert not aside


def test_an_older_trace_is_put_aside_and_not_lost(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    (tmp_path / ".nfsdb.stats").write_text("{}")
    *_, aside = session.prepare(tmp_path)
    assert aside
    assert (tmp_path / ".nfsdb.old").read_text() == "older"
    assert not (tmp_path / ".nfsdb").exists()
    assert not (tmp_path / ".nfsdb.stats").exists()


def test_a_file_in_the_way_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaptureError) as error:
        session.prepare(tmp_path / "file" / "dir")
    assert "-o" in error.value.hint
