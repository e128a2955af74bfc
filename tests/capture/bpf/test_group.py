# SPDX-License-Identifier: Apache-2.0
"""`etrace-bpf` with two capabilities, for a user: what its trace does not say."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import BPF, need_root

pytestmark = pytest.mark.root
NOBODY = 65534
#: as `setcap cap_bpf,cap_perfmon+ep` writes them
CAPABILITIES = struct.pack("<5I", 2 << 24 | 1, 0, 0, 1 << 38 - 32 | 1 << 39 - 32, 0)
SECRET = "release-of-client-x"
NAMES = Path(__file__).parents[2] / "vm/guest/names.c"


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder with the program that has capabilities, and one to work in."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="etrace-group-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(BPF.path(), folder / "etrace-bpf")
        (folder / "etrace-bpf").chmod(0o755)
        os.setxattr(folder / "etrace-bpf", "security.capability", CAPABILITIES)
        subprocess.run(["cc", NAMES, "-o", folder / "names"], check=True)
        (folder / "work").mkdir()
        os.chown(folder / "work", NOBODY, NOBODY)
        yield folder


def traced(place: Path, target: Path) -> bytes:
    subprocess.run(
        [place / "etrace-bpf", "-o", "trace", "--", place / "names", target],
        cwd=place / "work", user=NOBODY, group=NOBODY, extra_groups=[], check=True,
    )  # fmt: skip
    return (place / "work/trace").read_bytes()


@pytest.mark.parametrize("mode", [0o700, 0o744, 0o711])
def test_a_member_learns_no_name_in_a_directory_that_is_closed_to_them(
    place: Path, mode: int
) -> None:
    inner = place / "private" / SECRET
    inner.mkdir(parents=True)
    (place / "private/current").symlink_to(SECRET)
    (inner / "f").touch()
    inner.parent.chmod(mode)
    target = place / "private/current/f"
    assert target.is_file()
    assert (SECRET.encode() in traced(place, target)) == (mode == 0o711)
