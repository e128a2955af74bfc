# SPDX-License-Identifier: Apache-2.0
"""Devices keep nothing of what is written to them; files below /dev, in a tmpfs, keep all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import capture_database
from libetrace.depend import configuration as config
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.image.devices import device_mask, is_device
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.spec.database import EXISTS, FILE_TYPES

GONE = 0


@pytest.mark.parametrize(
    ("path", "type_name", "expected"),
    [
        ("/dev/null", "CHR", True),
        ("/srv/chroot/dev/null", "CHR", True),
        ("/run/systemd/journal/socket", "SOCK", True),
        ("/dev/log", "SOCK", True),
        ("/dev/sda", "BLK", False),
        ("/dev/image", "REG", False),
        ("/dev/shm/a.o", "REG", False),
        ("/dev/mqueue/jobs", "REG", False),
        ("/dev/pts", "DIR", False),
        ("/dev/initctl", "FIFO", False),
        ("/dev/stdin", "LNK", True),
        ("/dev/shm/link", "LNK", False),
        ("/dev/null", None, True),
        ("/dev/pts/3", None, True),
        ("/dev/fd/3", None, True),
        ("/dev/bus/usb/001/002", None, True),
        ("/dev/shm/cc1a2b3c.s", None, False),
        ("/dev/shm/portage/a/b.o", None, False),
        ("/dev/scratch/cc1a2b3c.s", None, False),
        ("/dev/ptsx/a", None, False),
        ("/devices/a", None, False),
        ("/w/dev/pts/a", None, False),
        ("/dev", None, False),
        ("", None, False),
    ],
)
def test_the_type_of_a_file_decides_and_then_its_name(
    path: str, type_name: str | None, expected: bool
) -> None:
    mode = EXISTS | FILE_TYPES[type_name] if type_name else GONE
    assert is_device(path.encode(), mode) is expected


SCRIPT = """\
printf '#include "a.h"\\nint main(void) { return A; }\\n' > a.c; echo '#define A 0' > a.h
gcc -c a.c; gcc a.o -o prog; cat a.h > /dev/null; wc < /dev/null > count
"""


@pytest.fixture(scope="module", params=["work", "temporary"])
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Image]]:
    """Yield a build below /dev/shm, and one with its temporary files there."""
    shared = Path(tempfile.mkdtemp(dir="/dev/shm"))
    folder = tmp_path_factory.mktemp("devices")
    work = shared if request.param == "work" else folder / "work"
    work.mkdir(exist_ok=True)
    script = f"export TMPDIR={shared}\n{SCRIPT}"
    try:
        image = capture_database(folder, ["/bin/sh", "-ec", script], work)
        postprocess(image, config.load(folder), ("linked", "compilations"))
        yield work, open_database(folder)
    finally:
        shutil.rmtree(shared)


def inputs(image: Image, path: Path) -> set[bytes]:
    rows = [image.find_path(os.fsencode(path))]
    found = join(Dependencies(image).closures(rows, Rules()), rows)
    return {image.path_string(row) for row in found}


def test_a_build_in_shared_memory_has_its_dependencies(built: tuple[Path, Image]) -> None:
    work, image = built
    for result in ("a.o", "prog"):
        found = inputs(image, work / result)
        assert {os.fsencode(work / "a.c"), os.fsencode(work / "a.h")} <= found
    assert os.fsencode(work / "a.h") not in inputs(image, work / "count")


def test_a_build_in_shared_memory_has_its_products_and_kinds(built: tuple[Path, Image]) -> None:
    work, image = built
    linked = {image.path_string(row) for row in image["linked"]["path"]}
    compiled = {image.path_string(row) for row in image["compilation_objects"]["path"]}
    assert (linked, compiled) == ({os.fsencode(work / "prog")}, {os.fsencode(work / "a.o")})
    kinds, names = FileKinds(image), {"a.c": "source", "a.h": "header", "a.o": "object"}
    for name, kind in names.items():
        assert kinds.of(image.find_path(os.fsencode(work / name))) == kind
    assert kinds.of(image.find_path(b"/dev/null")) is FileKind.DEVICE


def test_the_mask_has_each_device_of_a_build(built: tuple[Path, Image]) -> None:
    _, image = built
    devices = {image.path_string(row) for row, is_one in enumerate(device_mask(image)) if is_one}
    assert b"/dev/null" in devices
    for name in devices & {os.fsencode(path) for path in Path("/dev").iterdir()}:
        assert not stat.S_ISREG(Path(os.fsdecode(name)).lstat().st_mode)
    assert not any(name.startswith(b"/dev/shm/") for name in devices)
