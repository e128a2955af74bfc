# SPDX-License-Identifier: Apache-2.0
"""How to get the kernel module on this machine: it depends on how etrace was installed.

A source tree builds it; a distribution has it in the package etrace-dkms, which needs the kernel's
headers; what pip installed has no source of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import etrace
from etrace.capture.kmod.loading import presence

#: the source distribution; pyproject.toml has the name
ARCHIVE = "linux_build_tracer"
WHAT = "build and install it for this kernel: "


@dataclass(frozen=True, slots=True)
class Installation:
    """The files that tell how etrace came here; tests replace them."""

    root: str = "/"
    package: str = os.path.dirname(os.path.realpath(etrace.__file__))  # noqa: PTH120
    prefix: str = sys.prefix
    release: str = presence.release()

    def has(self, path: str) -> bool:
        """Whether a path below the root is there."""
        return os.path.exists(os.path.join(self.root, path))  # noqa: PTH110, PTH118

    @property
    def is_packaged(self) -> bool:
        """Whether the distribution installed etrace, and not pip or `make build`."""
        return self.package.startswith("/usr/lib")

    def source_trees(self) -> tuple[str, str]:
        """Return where the source tree of etrace may be: around it, or around its `.venv`."""
        return os.path.dirname(self.package), os.path.dirname(self.prefix)  # noqa: PTH120


def install_command(here: Installation, package: str) -> str:
    """Return how to install a package, by its name on Debian, on this distribution."""
    if here.has("usr/bin/dnf"):
        return f"sudo dnf install {package.replace('linux-headers-', 'kernel-devel-')}"
    if here.has("usr/bin/pacman"):
        headers = package.startswith("linux-headers-")
        return f"sudo pacman -S {'linux-headers' if headers else package}"
    return f"sudo apt-get install {package}"


def tree_hint(trees: Iterable[str]) -> str:
    """Return how to build the module in the first of these source trees that has it."""
    for tree in trees:
        if os.path.isfile(f"{tree}/kmod/Kbuild"):  # noqa: PTH113
            return f"{WHAT}cd {tree} && make module && sudo make install-module"
    return ""


def hint(here: Installation) -> str:
    """Return what to do to have the module for this kernel: commands to copy."""
    if told := tree_hint(here.source_trees()):
        return told
    headers = install_command(here, f"linux-headers-{here.release}")
    has_headers = here.has(f"lib/modules/{here.release}/build/Makefile")
    if here.has("usr/sbin/etrace-module"):
        if has_headers:
            return f"{WHAT}sudo etrace-module build {here.release}"
        return f"install the kernel's headers, and etrace-dkms builds it: {headers}"
    if here.is_packaged:
        return f"install its package: {install_command(here, 'etrace-dkms')}"
    name = f"{ARCHIVE}-{etrace.__version__}"
    make = f"make -C {name}/kmod modules && sudo make -C {name}/kmod modules_install"
    first = "" if has_headers else f"{headers} && "
    return (
        f"{WHAT}what pip installed has no source of it; get the source archive {name}.tar.gz, then "
        f"{first}tar xf {name}.tar.gz && {make}"
    )
