# SPDX-License-Identifier: Apache-2.0
"""This Python, its library and etrace as one archive: over 9p an import takes a guest a minute."""

from __future__ import annotations

import re
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

PACKAGES = ("etrace", "libetrace", "pyroute2")
LEFT_OUT = re.compile(
    r".*/(test|tests|idlelib|tkinter|ensurepip|lib2to3|turtledemo|site-packages|dist-packages|"
    r"config-[^/]*|[^/]*\.a|[^/]*\.opt-\d\.pyc)"
)


def pack(archive: Path) -> None:
    """Write `python/bin/python3` and `python/lib/pythonX.Y/`, with etrace and what it imports."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path("python/lib") / version
    packages = Path(sysconfig.get_path("platlib"))
    with tarfile.open(archive, "w", dereference=True) as tar:
        tar.add(sys.executable, "python/bin/python3")
        tar.add(sysconfig.get_path("stdlib"), str(library), filter=_wanted)
        for path in (Path(sys.base_prefix) / "lib").glob("libpython3*.so*"):
            tar.add(path, f"python/lib/{path.name}")
        for name in PACKAGES:
            if not (packages / name).is_dir():
                pytest.fail(f"{packages / name} is missing: run `make build`")
            # beside the library itself: Debian's Python does not look into site-packages
            tar.add(packages / name, str(library / name))


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if LEFT_OUT.fullmatch(member.name) else member
