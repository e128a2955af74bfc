# SPDX-License-Identifier: Apache-2.0
"""Finding etrace.ko, and refusing one that not only root can have written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root

from etrace.capture.kmod.loading import module, presence
from etrace.errors import CaptureError


@pytest.fixture
def safe() -> Iterator[Path]:
    """A directory below / that only root can write, all along its path."""
    need_root()
    path = Path(tempfile.mkdtemp(prefix="etrace-test-", dir="/run"))
    yield path
    shutil.rmtree(path)


def put(directory: Path, content: bytes = b"\x7fELF") -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / presence.FILE
    file.write_bytes(content)
    return file


@pytest.mark.root
def test_a_file_of_root_is_opened(safe: Path) -> None:
    fd = module.open_trusted(put(safe))
    assert os.read(fd, 4) == b"\x7fELF"
    os.close(fd)


def own_file(file: Path) -> None:
    os.chown(file, 65534, 65534)


def own_directory(file: Path) -> None:
    os.chown(file.parent, 65534, 65534)


def open_file(file: Path) -> None:
    file.chmod(0o666)


def open_directory(file: Path) -> None:
    file.parent.chmod(0o1777)


def open_to_group(file: Path) -> None:
    os.chown(file.parent, 0, 65534)
    file.parent.chmod(0o775)


@pytest.mark.root
@pytest.mark.parametrize(
    "spoil", [own_file, own_directory, open_file, open_directory, open_to_group]
)
def test_a_file_that_somebody_else_can_write_is_refused(safe: Path, spoil: object) -> None:
    file = put(safe / "lib")
    spoil(file)  # type: ignore[operator]
    with pytest.raises(CaptureError, match="others than root can write to it"):
        module.open_trusted(file)


@pytest.mark.root
def test_a_link_leads_to_what_is_checked(safe: Path, tmp_path: Path) -> None:
    elsewhere = put(tmp_path)  # below /tmp, which everybody can write
    (safe / "link.ko").symlink_to(elsewhere)
    with pytest.raises(CaptureError, match="/tmp: others than root"):
        module.open_trusted(safe / "link.ko")
    (safe / "good.ko").symlink_to(put(safe / "lib"))
    os.close(module.open_trusted(safe / "good.ko"))


@pytest.mark.root
def test_what_is_no_file_is_refused(safe: Path) -> None:
    with pytest.raises(CaptureError, match="not a regular file"):
        module.open_trusted(safe)
    with pytest.raises(CaptureError, match="No such file"):
        module.open_trusted(safe / "none.ko")
    (safe / "loop.ko").symlink_to(safe / "loop.ko")
    with pytest.raises(CaptureError):
        module.open_trusted(safe / "loop.ko")


@pytest.mark.root
def test_a_file_that_is_no_module_is_refused_by_the_kernel(safe: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be loaded") as error:
        module.load_file(put(safe))
    assert error.value.hint


def test_the_kernel_a_module_was_built_for_is_read(tmp_path: Path) -> None:
    text = b"\x7fELF..license=GPL\0vermagic=6.1.0-56-amd64 SMP preempt mod_unload \0rest"
    assert presence.built_for(put(tmp_path, text)) == "6.1.0-56-amd64"
    assert presence.built_for(put(tmp_path, b"no module")) == ""
    assert presence.built_for(tmp_path / "none") == ""


def test_the_index_of_modprobe_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "MODULES", tmp_path)
    assert not presence.is_indexed()
    index = tmp_path / presence.release() / "modules.dep"
    index.parent.mkdir()
    index.write_text("kernel/net/notetrace.ko:\n")
    assert not presence.is_indexed()
    for line in ("updates/dkms/etrace.ko:\n", "etrace.ko.xz: a.ko\n"):
        index.write_text("kernel/a.ko:\n" + line)
        assert presence.is_indexed()


def test_without_a_module_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "MODULES", tmp_path)
    monkeypatch.setattr(presence, "candidates", lambda: iter([tmp_path / "etrace.ko"]))
    with pytest.raises(CaptureError, match=r"no etrace\.ko for this kernel") as error:
        module.KernelModules().load(None)
    assert "--module" in error.value.hint
    assert module.KernelModules().source() == ""
    vermagic = f"vermagic={presence.release()} SMP".encode()
    file = put(tmp_path, vermagic)
    assert module.KernelModules().source() == str(file)


def test_a_module_that_is_built_in_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "MODULES", tmp_path)
    monkeypatch.setattr(presence, "LOADED", str(tmp_path / "none"))
    assert not presence.is_loaded()
    index = tmp_path / presence.release() / "modules.builtin"
    index.parent.mkdir()
    index.write_text("kernel/kernel/configs.ko\nkernel/kernel/trace/etrace/etrace.ko\n")
    assert presence.is_loaded()
    assert presence.source() == "loaded"
