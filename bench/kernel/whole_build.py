# SPDX-License-Identifier: Apache-2.0
"""What the kernel module and its collector add to the time of a real build, by instructions.

Lua is built in the guest, alternately natively and traced; a nanosecond of the guest's clock is an
instruction (instructions.py). The guest has one processor, on which the collector works too, and
all files of the build in memory: it waits for nothing.

    PYTHONPATH=tests:bench python3 -m kernel.whole_build [KERNEL]

Exit status 1 when tracing makes it more than 1 % longer.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import sources
from kernel import instructions as bench
from vm import kernels, machine
from vm.archive import ArchiveError, run
from vm.rig import BUILD

TURNS = 1
MOST = 1.01
QUOTED_PATH = re.compile(r'"(/(?:usr|bin|lib|lib64|etc)/[^"]+)"')
# A machine's own mounts and users are of no use to a build.
FOLDERS = ("dev", "tmp", "proc")


def used_files(tree: Path, log: Path) -> set[str]:
    """Build in `tree`; return the paths of the machine's files that the build looked at."""
    command = ["strace", "-f", "-qq", "-e", "trace=%file", "-o", str(log), "make", "linux"]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, env=environment())
    found = set(QUOTED_PATH.findall(log.read_text(errors="replace")))
    return {path for path in found if "llvm" not in path.lower()}  # plugins of ar: 280 MB


def environment() -> dict[str, str]:
    """Return what the build sees, here and in the guest."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}


def mirror(path: str, root: Path) -> None:
    """Copy a file, or make a folder, below `root` with every link and folder on the way to it."""
    done = Path("/")
    for part in Path(path).parts[1:]:
        done /= part
        copy = root / done.relative_to("/")
        if done.is_symlink() and not copy.is_symlink():
            copy.symlink_to(done.readlink())
        if done.is_symlink():
            mirror(os.path.normpath(done.parent / done.readlink()), root)
        elif done.is_dir():
            copy.mkdir(exist_ok=True)
        elif done.is_file() and not copy.exists():
            shutil.copy2(done, copy)


def pack_root(work: Path) -> None:
    """Put a root folder with Lua's sources and all that its build uses into work/root.tar."""
    root = work / "root"
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    tree = sources.fetch("lua5.4", work / "unpacked")
    shutil.copytree(tree, root / "sources", symlinks=True)
    for path in used_files(tree, work / "strace.log"):
        mirror(path, root)
    run("tar", "-C", root, "-cf", work / "root.tar", ".")
    shutil.rmtree(root)


def measure(name: str) -> bench.Figures:
    """Boot the kernel called `name` and return the figures that build_cost.sh leaves."""
    found = kernels.find(name)
    work = BUILD / f"bench-build-{name}"
    bench.prepare(found, work)
    pack_root(work)
    ran = machine.run(found, work, "build_cost.sh", str(TURNS), boot=bench.BOOT)
    if ran.status:
        raise machine.MachineError(f"build_cost.sh ended with {ran.status}:\n{ran.console[-2000:]}")
    return bench.read(work / "out" / "build")


def main(argv: list[str]) -> int:
    """Build, and print what was added."""
    name = argv[0] if argv else kernels.MACHINE
    try:
        figures = measure(name)
    except (ArchiveError, machine.MachineError, OSError, subprocess.CalledProcessError) as error:
        print(f"bench/kernel/whole_build.py: {error}", file=sys.stderr)
        return 1
    native, traced = median(figures["native"]), median(figures["traced"])
    ratio = traced / native
    print(
        f"{name}, Lua's build: {native / 1e9:.3f} G instructions natively, {traced / 1e9:.3f} G "
        f"traced with {figures['lines'][0]:,} lines collected: {ratio:.4f}, at most {MOST}"
    )
    if ratio > MOST:
        print(f"bench/kernel/whole_build.py: {ratio:.4f} is above {MOST}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
