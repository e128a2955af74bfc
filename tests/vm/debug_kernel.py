# SPDX-License-Identifier: Apache-2.0
"""Debian's 6.1 source built with KASAN, lockdep, atomic-sleep checks, kmemleak, fault injection.

tinyconfig and tests/vm/debug.config; built once below archive.cache(), about 15 minutes of one
core and 2 GB. A changed debug.config builds another one.

    PYTHONPATH=tests nice python3 -m vm.debug_kernel    builds it and prints the image's path
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from vm import kernel_source
from vm.archive import ArchiveError, cache, locked, run, tool

CONFIG = Path(__file__).resolve().parent / "debug.config"
# What kbuild needs besides a compiler: package and a file of it.
NEEDED = {
    "flex": "/usr/bin/flex",
    "bison": "/usr/bin/bison",
    "bc": "/usr/bin/bc",
    "libelf-dev": "/usr/include/libelf.h",
    "xz-utils": "/usr/bin/xz",
}


def build() -> Path:
    """Return the build folder of the debug kernel, built if it is not there yet."""
    _check_needed()
    digest = hashlib.sha256(CONFIG.read_bytes()).hexdigest()[:12]
    source = kernel_source.tree()
    with locked("debug"):
        done = cache() / f"debug-{digest}"
        if not done.is_dir():
            part = done.with_name("debug.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _configure(source, part)
            _make(source, part, f"-j{os.environ.get('ETRACE_JOBS', '2')}", "bzImage", "modules")
            part.rename(done)
    return done


def _check_needed() -> None:
    missing = [package for package, file in NEEDED.items() if not Path(file).exists()]
    if missing:
        raise ArchiveError(f"the debug kernel needs: apt-get install {' '.join(missing)}")


def _configure(source: Path, folder: Path) -> None:
    _make(source, folder, "tinyconfig")
    merge = source / "scripts/kconfig/merge_config.sh"
    run(merge, "-m", "-O", folder, folder / ".config", CONFIG, cwd=source)
    _make(source, folder, "olddefconfig")
    config = set((folder / ".config").read_text().splitlines())
    asked = [line for line in CONFIG.read_text().splitlines() if line.startswith("CONFIG_")]
    refused = [line for line in asked if line not in config]
    if refused:
        raise ArchiveError(f"{CONFIG}: the kernel does not take {', '.join(refused)}")


def _make(source: Path, folder: Path, *targets: str) -> None:
    log = folder / "build.log"
    with log.open("ab") as output:
        done = subprocess.run(
            [tool("make"), "-C", source, f"O={folder}", *targets],
            stdout=output, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    if done.returncode:
        raise ArchiveError(f"make {' '.join(targets)} of the debug kernel failed: see {log}")


def main() -> int:
    """Run as a program; see the head of this file."""
    try:
        print(build() / "arch/x86/boot/bzImage")
    except (ArchiveError, OSError) as error:
        print(f"debug_kernel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
