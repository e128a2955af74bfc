# SPDX-License-Identifier: Apache-2.0
"""What `etrace doctor` tells a machine without the module, by how etrace was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from etrace import __version__
from etrace.capture.kmod.loading import provision
from etrace.capture.kmod.loading.provision import Installation

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
    assert provision.hint(_machine(tmp_path, package, *files)) == said


def test_pip_needs_the_source_archive_and_headers(tmp_path: Path) -> None:
    name = f"linux_build_tracer-{__version__}"
    make = (
        f"tar xf {name}.tar.gz && make -C {name}/kmod modules && "
        f"sudo make -C {name}/kmod modules_install"
    )
    missing = provision.hint(_machine(tmp_path, PIP))
    assert missing.endswith(f"then sudo apt-get install linux-headers-{RELEASE} && {make}")
    assert provision.hint(_machine(tmp_path, PIP, HEADERS)).endswith(f"then {make}")


def test_the_source_tree_is_named_where_the_module_can_be_built(tmp_path: Path) -> None:
    (tmp_path / "tree/kmod").mkdir(parents=True)
    (tmp_path / "tree/kmod/Kbuild").touch()
    here = Installation(str(tmp_path), f"{PIP}/etrace", str(tmp_path / "tree/.venv"), RELEASE)
    assert provision.hint(here) == (
        f"build and install it for this kernel: cd {tmp_path}/tree && "
        "make module && sudo make install-module"
    )
