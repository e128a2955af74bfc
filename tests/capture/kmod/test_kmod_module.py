# SPDX-License-Identifier: Apache-2.0
"""Finding etrace.ko, refusing one that not only root can have written, and how to get it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root

from etrace import __version__
from etrace.capture.kmod.findings import Installation, module_hint
from etrace.capture.kmod.system import module, presence
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
    with pytest.raises(CaptureError, match="users other than root can write to it"):
        module.open_trusted(file)


@pytest.mark.root
def test_a_link_leads_to_what_is_checked(safe: Path, tmp_path: Path) -> None:
    elsewhere = put(tmp_path)  # below /tmp, which everybody can write
    (safe / "link.ko").symlink_to(elsewhere)
    with pytest.raises(CaptureError, match="/tmp: users other than root"):
        module.open_trusted(safe / "link.ko")
    (safe / "good.ko").symlink_to(put(safe / "lib"))
    os.close(module.open_trusted(safe / "good.ko"))


@pytest.mark.root
def test_what_is_not_a_file_is_refused(safe: Path) -> None:
    with pytest.raises(CaptureError, match="not a regular file"):
        module.open_trusted(safe)
    with pytest.raises(CaptureError, match="No such file"):
        module.open_trusted(safe / "none.ko")
    (safe / "loop.ko").symlink_to(safe / "loop.ko")
    with pytest.raises(CaptureError):
        module.open_trusted(safe / "loop.ko")


@pytest.mark.root
def test_a_file_that_is_not_a_module_is_refused_by_the_kernel(safe: Path) -> None:
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
        module.Modules().load(None)
    assert "--kernel-module" in error.value.hint
    assert module.Modules().source() == ""
    vermagic = f"vermagic={presence.release()} SMP".encode()
    file = put(tmp_path, vermagic)
    assert module.Modules().source() == str(file)


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


# ---- the hint of `etrace doctor` for a machine without the module

RELEASE = "6.1.0-9-amd64"
DEBIAN = "/usr/lib/python3/dist-packages/etrace"
FEDORA = "/usr/lib64/python3.13/site-packages/etrace"
PIP = "/home/user/venv/lib/python3.11/site-packages/etrace"


def _machine(root: Path, package: str, *files: str) -> Installation:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return Installation(str(root), package, "/usr", RELEASE)


HEADERS = f"lib/modules/{RELEASE}/build/Makefile"
BUILDER = "usr/sbin/etrace-module"


@pytest.mark.parametrize(
    ("package", "files", "said"),
    [
        (DEBIAN, (), "install its package: sudo apt-get install etrace-dkms"),
        (FEDORA, ("usr/bin/dnf",), "install its package: sudo dnf install etrace-dkms"),
        (FEDORA, ("usr/bin/pacman",), "install its package: sudo pacman -S etrace-dkms"),
        (DEBIAN, (BUILDER,), ("install the kernel's headers, and etrace-dkms builds it: "
         f"sudo apt-get install linux-headers-{RELEASE}")),
        (FEDORA, (BUILDER, "usr/bin/dnf"), ("install the kernel's headers, and etrace-dkms builds "
         f"it: sudo dnf install kernel-devel-{RELEASE}")),
        (DEBIAN, (BUILDER, HEADERS),
         f"build and install it for this kernel: sudo etrace-module build {RELEASE}"),
    ],
)  # fmt: skip
def test_a_distribution_has_the_module_in_a_package(
    tmp_path: Path, package: str, files: tuple[str, ...], said: str
) -> None:
    assert module_hint(_machine(tmp_path, package, *files)) == said


def test_pip_needs_the_source_archive_and_headers(tmp_path: Path) -> None:
    name = f"linux_build_tracer-{__version__}"
    make = (
        f"tar xf {name}.tar.gz && make -C {name}/kmod modules && "
        f"sudo make -C {name}/kmod modules_install"
    )
    missing = module_hint(_machine(tmp_path, PIP))
    assert missing.endswith(f"then sudo apt-get install linux-headers-{RELEASE} && {make}")
    assert module_hint(_machine(tmp_path, PIP, HEADERS)).endswith(f"then {make}")


def test_the_source_tree_is_named_where_the_module_can_be_built(tmp_path: Path) -> None:
    (tmp_path / "tree/kmod").mkdir(parents=True)
    (tmp_path / "tree/kmod/Kbuild").touch()
    here = Installation(str(tmp_path), f"{PIP}/etrace", str(tmp_path / "tree/.venv"), RELEASE)
    assert module_hint(here) == (
        f"build and install it for this kernel: cd {tmp_path}/tree && "
        "make module && sudo make install-module"
    )
