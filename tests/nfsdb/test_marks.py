# SPDX-License-Identifier: Apache-2.0
"""A mark says that this user captured a build here; nothing that came from elsewhere has one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from backends import need_root
from traced_builds import BIN

from etrace.capture.kmod.system.output import identity_of, open_output
from etrace.capture.kmod.system.owner import myself
from etrace.nfsdb import marks
from etrace.nfsdb.files import name_files
from etrace.nfsdb.owned import is_captured
from etrace.nfsdb.store import open_database
from etrace.parse.database import parse_database

STRANGER = 12345


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def names(state: Path) -> list[str]:
    return [path.name for path in state.glob("etrace/captured/*/*")]


def capture(folder: Path, *words: str) -> Path:
    folder.mkdir(exist_ok=True)
    subprocess.run([BIN / "etrace", "run", "-q", *words, "--", "true"], cwd=folder, check=True)
    return folder / ".nfsdb"


def parse(folder: Path, *words: str) -> None:
    subprocess.run([BIN / "cas", "parse", "-q", *words], cwd=folder, check=True)


def is_own(folder: Path) -> bool:
    return is_captured(open_database(folder))


@pytest.mark.parametrize("backend", ["ptrace", "preload", "strace", "auto"])
def test_every_backend_marks_what_it_captured(tmp_path: Path, backend: str) -> None:
    assert marks.is_marked(capture(tmp_path / "a", "--backend", backend))


def test_what_is_made_of_a_marked_trace_is_marked(tmp_path: Path) -> None:
    capture(tmp_path / "a")
    parse(tmp_path / "a")
    assert is_own(tmp_path / "a")
    subprocess.run([BIN / "cas", "pp"], cwd=tmp_path / "a", check=True, capture_output=True)
    assert is_own(tmp_path / "a")
    parse(tmp_path / "a", "--force")
    assert is_own(tmp_path / "a")


def test_a_copy_and_a_moved_database_keep_their_mark(tmp_path: Path) -> None:
    capture(tmp_path / "a")
    parse(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert is_own(tmp_path / "b")
    (tmp_path / "a").rename(tmp_path / "c")
    assert is_own(tmp_path / "c")


@pytest.mark.parametrize("name", [".nfsdb", ".nfsdb.img"])
def test_a_changed_file_has_none(tmp_path: Path, name: str) -> None:
    capture(tmp_path / "a")
    parse(tmp_path / "a")
    path = tmp_path / "a" / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not marks.is_marked(path)


def test_what_is_made_of_a_trace_of_others_has_none(tmp_path: Path, state: Path) -> None:
    capture(tmp_path / "a")
    shutil.rmtree(state)  # on another machine, by another user
    parse(tmp_path / "a")
    assert not is_own(tmp_path / "a")
    subprocess.run([BIN / "cas", "pp"], cwd=tmp_path / "a", check=True, capture_output=True)
    assert not is_own(tmp_path / "a")
    assert names(state) == []


def test_an_image_made_of_json_has_none(tmp_path: Path) -> None:
    capture(tmp_path / "a")
    parse(tmp_path / "a", "--json")
    assert is_own(tmp_path / "a")
    (tmp_path / "a/.nfsdb.img").unlink()
    assert not is_own(tmp_path / "a")


def test_marked_and_unmarked_traces_together_have_none(tmp_path: Path) -> None:
    mine, other = capture(tmp_path / "a"), tmp_path / "b"
    other.write_bytes(mine.read_bytes() + b"\n")
    parse_database([mine, other], name_files(mine))
    assert not is_own(tmp_path / "a")


def test_an_imported_log_has_none(tmp_path: Path) -> None:
    log = '1 1.000000 execve("/bin/true", ["true"], 0x1) = 0\n1 1.100000 +++ exited with 0 +++\n'
    (tmp_path / "log").write_text(log)
    words: list[str | Path] = [BIN / "etrace", "import", "strace", "--cwd", "/", "log"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert not marks.is_marked(tmp_path / ".nfsdb")


def test_a_machine_has_marks_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = capture(tmp_path / "a")
    assert marks.is_marked(trace)
    monkeypatch.setattr(marks, "_machine", lambda: "another")
    assert not marks.is_marked(trace)


@pytest.mark.root
def test_a_directory_that_others_own_or_write_counts_for_nothing(
    tmp_path: Path, state: Path
) -> None:
    need_root()
    trace = capture(tmp_path / "a")
    (folder,) = state.glob("etrace/captured/*")
    os.chown(folder, STRANGER, -1)
    assert not marks.is_marked(trace)
    os.chown(folder, 0, -1)
    assert marks.is_marked(trace)
    folder.chmod(0o777)
    assert not marks.is_marked(trace)


def test_where_no_mark_can_be_left_the_capture_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    trace = capture(tmp_path / "a")
    assert trace.stat().st_size > 0
    assert not marks.is_marked(trace)


def test_old_marks_go(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MAX_MARKS", 10)
    for number in range(12):
        path = tmp_path / f"f{number}"
        path.write_text(str(number))
        marks.mark(path)
    assert len(names(state)) <= 10
    assert marks.is_marked(path)


def test_a_session_of_the_kernel_module_marks_its_trace(tmp_path: Path) -> None:
    """Of `etrace stop`, of `etrace run --backend kmod`, and of a session at etraced."""
    output = open_output(tmp_path / "a", myself())
    fd = output.create()
    os.write(fd, b"INITCWD=/\n")
    output.publish(".nfsdb", identity_of(fd))
    os.close(fd)
    assert marks.is_marked(tmp_path / "a/.nfsdb")
