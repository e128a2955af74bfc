# SPDX-License-Identifier: Apache-2.0
"""Where a capture's files go, and whose they are."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from backends import need_root

from etrace.capture import session
from etrace.errors import CaptureError


def test_a_directory_is_made(tmp_path: Path) -> None:
    trace, _ = session.prepare(str(tmp_path / "a" / "b"))
    assert trace == str(tmp_path / "a" / "b" / ".nfsdb")
    assert session.side_files(trace) == [f"{trace}.stats", f"{trace}.rsp", f"{trace}.accesses"]
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_an_older_trace_stays_until_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    session.prepare(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [".nfsdb"]


def test_a_trace_that_is_being_written_is_refused(tmp_path: Path) -> None:
    with (tmp_path / ".nfsdb").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(CaptureError, match="another capture is writing it"):
            session.prepare(str(tmp_path))


@pytest.mark.parametrize("name", ["file/dir", "."])
def test_what_is_in_the_way_is_an_error_with_a_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / ".nfsdb").mkdir()
    with pytest.raises(CaptureError) as error:
        session.prepare(str(tmp_path / name))
    assert "-o" in error.value.hint


@pytest.mark.root
def test_files_are_those_of_who_called_sudo_where_the_directory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    monkeypatch.setenv("SUDO_UID", "65534")
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    owner = session.owner_of(str(own / "not" / "made"))
    assert owner is not None
    assert (owner.uid, owner.gid) == (65534, 65534)
    assert session.owner_of(str(tmp_path)) is None
    monkeypatch.delenv("SUDO_UID")
    assert session.owner_of(str(own)) is None
