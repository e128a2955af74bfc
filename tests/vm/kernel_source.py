# SPDX-License-Identifier: Apache-2.0
"""Debian's source of the kernel: for the debug kernel, and for checkpatch.pl, in no other package.

PYTHONPATH=tests python3 -m vm.kernel_source    prints the path of checkpatch.pl
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from vm.archive import ArchiveError, Suite, cache, locked, run

SUITE = "bookworm"
PACKAGE = "linux-source-6.1"
REALTIME = "debian/patches-rt"
CHECKPATCH = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")


def tree() -> Path:
    """Return the whole source, unpacked: 1.4 GB."""
    return _unpacked(PACKAGE)


def realtime_tree() -> Path:
    """Return the whole source with Debian's patches for PREEMPT_RT."""
    folder = cache() / f"{PACKAGE}-rt"
    if not folder.is_dir():
        source = tree()
        with locked("source"):
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            run("cp", "-r", source, part)
            _patch(part)
            part.rename(folder)
    return folder


def _patch(source: Path) -> None:
    """Apply the patches of Debian's rt kernels, whose release may be older than the source."""
    folder = source.with_name(f"{PACKAGE}-rt.patches")
    shutil.rmtree(folder, ignore_errors=True)
    suite = Suite(SUITE, kind="deb-src")
    suite.update()
    run("tar", "-xf", suite.changes("linux", folder), "-C", folder, REALTIME)
    series = folder / REALTIME
    for name in (series / "series").read_text().split():
        # what later releases have by themselves is refused, and so is a patch of another machine
        subprocess.run(
            ["patch", "-s", "-p1", "--forward", "--reject-file=-", "-i", series / name],
            cwd=source, stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    shutil.rmtree(folder)


def checkpatch() -> Path:
    """Return checkpatch.pl beside the files that it reads."""
    names = [f"{PACKAGE}/scripts/{name}" for name in CHECKPATCH]
    return _unpacked("checkpatch", *names) / "scripts" / CHECKPATCH[0]


def _unpacked(name: str, *members: str) -> Path:
    """Return the folder `name` of the cache with `members` of the source, or all of it."""
    with locked("source"):
        folder = cache() / name
        if not folder.is_dir():
            part = folder.with_name(f"{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            run("tar", "-xf", archive(), "-C", part, "--strip-components=1", *members)
            part.rename(folder)
    return folder


def archive() -> Path:
    """Return the source's archive, fetched if it is not there yet."""
    package = cache() / "source-package"
    if not package.is_dir():
        suite = Suite(SUITE)
        suite.update()
        part = package.with_name("source-package.part")
        suite.unpack([PACKAGE], part)
        part.rename(package)
    return package / "usr/src" / f"{PACKAGE}.tar.xz"


def main() -> int:
    """Run as a program; see the head of this file."""
    try:
        print(checkpatch())
    except (ArchiveError, OSError) as error:
        print(f"kernel_source.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
