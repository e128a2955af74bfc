# SPDX-License-Identifier: Apache-2.0
"""Where a capture's files go, and whose they are."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from backends import PTRACE, need_root

from etrace.capture import files
from etrace.errors import CaptureError


def test_a_directory_is_made(tmp_path: Path) -> None:
    trace, _ = files.prepare(str(tmp_path / "a" / "b"))
    assert trace == str(tmp_path / "a" / "b" / ".nfsdb")
    suffixes = (".stats", ".rsp", ".accesses", ".hashes")
    assert files.side_files(trace) == [f"{trace}{suffix}" for suffix in suffixes]
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_an_older_trace_stays_until_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    files.prepare(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [".nfsdb"]


def test_a_trace_that_is_being_written_is_refused(tmp_path: Path) -> None:
    with (tmp_path / ".nfsdb").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        with pytest.raises(CaptureError, match="another capture is writing it"):
            files.prepare(str(tmp_path))


@pytest.mark.parametrize("name", ["file/dir", "."])
def test_what_is_in_the_way_is_an_error_with_a_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / ".nfsdb").mkdir()
    with pytest.raises(CaptureError) as error:
        files.prepare(str(tmp_path / name))
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
    owner = files.owner_of(str(own / "not" / "made"))
    assert owner is not None
    assert (owner.uid, owner.gid) == (65534, 65534)
    assert files.owner_of(str(tmp_path)) is None
    monkeypatch.delenv("SUDO_UID")
    assert files.owner_of(str(own)) is None


# ---- the files that the tracer writes: their names and who can read them


@pytest.fixture
def tracer(public: Path) -> Path:
    """Give the tracer where everybody can execute it."""
    return Path(shutil.copy(PTRACE.path(), public / "tracer"))


@pytest.mark.parametrize("options", [(), ("--rotate", "t.stats")])
@pytest.mark.parametrize("flags", [(), ("--env",)])
def test_arguments_and_environments_are_for_their_owner_alone(
    tracer: Path, tmp_path: Path, flags: tuple[str, ...], options: tuple[str, ...]
) -> None:
    folder = tracer.parent / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "t").touch()
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    os.chown(folder / "t", user, -1)
    subprocess.run(
        [tracer, "-o", "t", "--stats", "t.stats", *options, *flags, "--", "true"],
        check=True, umask=0o022, cwd=folder, user=user,
    )  # fmt: skip
    found = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert {name: found[name] for name in ("t", "t.stats")} == {"t": 0o600, "t.stats": 0o600}


def test_what_was_left_by_a_capture_that_was_killed_at_once_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "t.starting").write_text("half a line")
    command = [str(PTRACE.path()), "-o", "t", "--rotate", "t.stats", "--", "true"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert (tmp_path / "t").read_bytes().startswith(b"INITCWD=")


def test_what_would_change_the_terminal_is_shown_quoted(tmp_path: Path) -> None:
    """A name in a message is whatever a traced program likes: of a process, of a file."""
    name = b"/\x1b[31m\xc2\x9b\xe2\x80\xae\x9b\x7f\xc5\xbc\t\xf0\x9f\x98\x80"
    command = [os.fsencode(PTRACE.path()), b"-o", b"t", b"--", name]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True)
    shown = rb"/\x1b[31m\xc2\x9b\xe2\x80\xae\x9b\x7f" + b"\xc5\xbc\t\xf0\x9f\x98\x80"
    assert done.stderr == b"etrace: cannot run '%s': No such file or directory\n" % shown
