# SPDX-License-Identifier: Apache-2.0
"""What somebody else may cut is read, not mapped: cutting it harms no reader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from backends import need_root
from databases import write_database
from libetrace.core.regular_file import may_be_mapped, read_json, read_regular

IMAGE = """
from libetrace.image.file import open_image
image = open_image(path)
os.truncate(path, 0)
views = [view for table in image.tables.values() for view in table.columns.values()]
print(sum(bytes(view).count(b"s") for view in views))
"""
TRACE = """
from libetrace.trace.source import Source
with open(path, "rb") as stream:
    source = Source.from_fd(stream.fileno())
os.truncate(path, 0)
print(Source.merge([source]).size)
"""
LOG = """
from etrace.xray.source import open_log
data = open_log(path)
os.truncate(path, 0)
print(data[:].count(b"s"))
"""
NOBODY = 65534


def read_what_is_cut(path: Path, code: str) -> str:
    """Open a file in a process, cut it, read what was opened; returns what it printed."""
    command = [sys.executable, "-c", f"import os, sys\npath = sys.argv[1]\n{code}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return write_database(tmp_path) / ".nfsdb.img"


@pytest.mark.parametrize("code", [IMAGE, TRACE, LOG], ids=["image", "trace", "log"])
def test_what_others_may_write_can_be_cut(image: Path, code: str) -> None:
    image.chmod(0o606)
    assert int(read_what_is_cut(image, code)) > 0


@pytest.mark.root
@pytest.mark.parametrize("code", [IMAGE, TRACE, LOG], ids=["image", "trace", "log"])
def test_what_somebody_else_owns_can_be_cut(image: Path, code: str) -> None:
    need_root()
    os.chown(image, NOBODY, os.getgid())
    assert int(read_what_is_cut(image, code)) > 0


@pytest.mark.parametrize(
    ("mode", "wanted"), [(0o400, True), (0o644, True), (0o664, True), (0o646, False)]
)
def test_own_files_are_mapped(image: Path, mode: int, wanted: bool) -> None:
    image.chmod(mode)
    with image.open("rb") as stream:
        assert may_be_mapped(stream.fileno()) == wanted


@pytest.mark.root
def test_a_group_that_is_not_ones_own_is_somebody_else(image: Path) -> None:
    need_root()
    image.chmod(0o664)
    os.chown(image, os.getuid(), NOBODY)
    with image.open("rb") as stream:
        assert not may_be_mapped(stream.fileno())


# ---- limits ----


def test_a_file_of_the_limit_is_read_and_a_larger_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345678")
    assert read_regular(path, 8) == b"12345678"
    with pytest.raises(OSError, match="more than 7 bytes") as caught:
        read_regular(path, 7)
    assert caught.value.filename == str(path)
    with pytest.raises(ValueError, match="more than 7 bytes"):
        read_json(path, 7)


def test_a_file_that_grows_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1234")

    def grow(status: os.stat_result) -> bool:
        with path.open("ab") as stream:
            stream.write(b"5" * 100)
        return status.st_size == 4

    with pytest.raises(OSError, match="more than 50 bytes"):
        read_regular(path, 50, grow)
    path.write_bytes(b"1234")
    assert read_regular(path, 200, grow) == b"1234" + b"5" * 100


def test_what_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12\0" + b"4" * 8000)
    assert len(read_regular(path, 1 << 20)) == 8003
    with pytest.raises(OSError, match="not a text: it has null bytes"):
        read_regular(path, 1 << 20, is_text=True)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_a_regular_file_is_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "a")
    for path in (tmp_path / "a", Path("/proc/self/status"), Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file on a disk"):
            read_regular(path, 1 << 20)
