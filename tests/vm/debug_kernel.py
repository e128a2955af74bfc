# SPDX-License-Identifier: Apache-2.0
"""Debian's 6.1 source built with KASAN, lockdep, atomic-sleep checks, kmemleak, fault injection.

tinyconfig and tests/vm/debug.config; built once below archive.cache(), about 15 minutes of one
core and 2 GB. A changed debug.config builds another one. The same for PREEMPT_RT without KASAN and
kmemleak, which take sleeping locks of their own there: debug-rt.config is put on top.

    PYTHONPATH=tests nice python3 -m vm.debug_kernel [debug-rt]

builds it and prints the image's path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from vm import kernel_source
from vm.archive import ArchiveError, cache, locked, run, tool

HERE = Path(__file__).resolve().parent
CONFIGS = {
    "debug": (HERE / "debug.config",),
    "debug-rt": (HERE / "debug.config", HERE / "debug-rt.config"),
}
# What kbuild needs besides a compiler: package and a file of it.
NEEDED = {
    "flex": "/usr/bin/flex",
    "bison": "/usr/bin/bison",
    "bc": "/usr/bin/bc",
    "libelf-dev": "/usr/include/libelf.h",
    "xz-utils": "/usr/bin/xz",
    "patch": "/usr/bin/patch",
}


def build(name: str = "debug") -> Path:
    """Return the build folder of a debug kernel, built if it is not there yet."""
    check_needed()
    configs = CONFIGS[name]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in configs)).hexdigest()[:12]
    source = kernel_source.tree() if name == "debug" else kernel_source.realtime_tree()
    with locked(name):
        done = cache() / f"{name}-{digest}"
        if not done.is_dir():
            part = done.with_name(f"{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            configure(source, part, configs)
            make(source, part, f"-j{os.environ.get('ETRACE_JOBS', '2')}", "bzImage", "modules")
            part.rename(done)
    return done


def check_needed() -> None:
    missing = [package for package, file in NEEDED.items() if not Path(file).exists()]
    if missing:
        raise ArchiveError(f"building a kernel needs: apt-get install {' '.join(missing)}")


def configure(source: Path, folder: Path, configs: tuple[Path, ...]) -> None:
    make(source, folder, "tinyconfig")
    merge = source / "scripts/kconfig/merge_config.sh"
    run(merge, "-m", "-O", folder, folder / ".config", *configs, cwd=source)
    make(source, folder, "olddefconfig")
    config = _settings(folder / ".config")
    asked: dict[str, str] = {}
    for path in configs:
        asked |= _settings(path)
    refused = [name for name, value in asked.items() if config.get(name, "n") != value]
    if refused:
        raise ArchiveError(f"{configs[-1]}: the kernel does not take {', '.join(refused)}")


def _settings(config: Path) -> dict[str, str]:
    """Return the values of a configuration; `n` for what is said not to be set."""
    lines = config.read_text().splitlines()
    found = [re.fullmatch(r"(?:# )?(CONFIG_\w+)(?:=(.*)| is not set)", line) for line in lines]
    return {match[1]: match[2] or "n" for match in found if match}


def make(source: Path, folder: Path, *targets: str) -> None:
    log = folder / "build.log"
    with log.open("ab") as output:
        done = subprocess.run(
            [tool("make"), "-C", source, f"O={folder}", *targets],
            stdout=output, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    if done.returncode:
        raise ArchiveError(f"make {' '.join(targets)} of a kernel failed: see {log}")


def main(argv: list[str]) -> int:
    """Run as a program; see the head of this file."""
    try:
        print(build(*argv) / "arch/x86/boot/bzImage")
    except (ArchiveError, OSError) as error:
        print(f"debug_kernel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
