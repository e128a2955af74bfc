# SPDX-License-Identifier: Apache-2.0
"""Debian's kernel sources with etrace put into their own tree, built in or as a module of it.

`tree-6.1` has it built in, `tree-6.1-module` does not. tinyconfig, tests/vm/tree.config and the
selftest's own configuration; the module's part is brought up to date at each run.

    PYTHONPATH=tests nice python3 -m vm.tree_kernel tree-6.1    builds it, prints its path
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from vm import debug_kernel, kernel_source
from vm.archive import ArchiveError, Suite, cache, locked, run

TOP = Path(__file__).resolve().parents[2]
_KERNELS = tomllib.loads((TOP / "etrace/spec/kernels.toml").read_text())
SUITES = {name: kernel["suite"] for name, kernel in _KERNELS.items() if "tree" in kernel}
MODULE = "-module"
NAMES = tuple(f"tree-{version}{kind}" for version in SUITES for kind in ("", MODULE))
HOME = "kernel/trace/etrace"
MAINTAINER = "Nobody <nobody@example.org>"
CONFIGS = (TOP / "tests/vm/tree.config", TOP / "kmod/tree/selftests/config")


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel that was built: its image is beside the module, if there is one."""

    release: str
    image: Path
    source: Path
    folder: Path  # of the objects


def script(command: str, *words: str | Path) -> str:
    """Run build-aux/kernel_tree.py."""
    maintainer = [] if command == "remove" else ["--maintainer", MAINTAINER]
    return run(sys.executable, TOP / "build-aux/kernel_tree.py", command, *words, *maintainer)


def source(version: str) -> Path:
    """Return the source of a release with etrace as it is now."""
    folder = cache() / f"tree-{version}"
    if not folder.is_dir():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        run("tar", "-xf", archive(version), "-C", part, "--strip-components=1")
        part.rename(folder)
    script("put", folder)
    return folder


def archive(version: str) -> Path:
    """Return the archive of a release's source, fetched if it is not there yet."""
    if f"linux-source-{version}" == kernel_source.PACKAGE:
        with locked("source"):
            return kernel_source.archive()
    package = cache() / f"source-package-{version}"
    if not package.is_dir():
        suite = Suite(SUITES[version])
        suite.update()
        part = package.with_name(f"{package.name}.part")
        suite.unpack([f"linux-source-{version}"], part)
        part.rename(package)
    return package / f"usr/src/linux-source-{version}.tar.xz"


@functools.cache
def build(name: str) -> Built:
    """Return the kernel called `name`, up to date with this tree."""
    debug_kernel.check_needed()
    version = name.removeprefix("tree-").removesuffix(MODULE)
    with locked(f"tree-{version}"):
        tree = source(version)
        folder = cache() / f"tree-{version}.o"
        configure(tree, folder, "m" if name.endswith(MODULE) else "y")
        compiler = "CC=ccache gcc" if shutil.which("ccache") else "CC=gcc"
        jobs = f"-j{os.environ.get('ETRACE_JOBS', '2')}"
        debug_kernel.make(tree, folder, compiler, jobs, "bzImage", "modules")
        release = (folder / "include/config/kernel.release").read_text().strip()
        return Built(release, _keep(name, folder), tree, folder)


def configure(tree: Path, folder: Path, value: str) -> None:
    """Configure the build, with etrace built in (y) or as a module (m)."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in CONFIGS)).hexdigest()
    mark = folder / "configured"
    if not mark.exists() or mark.read_text() != digest:
        folder.mkdir(exist_ok=True)
        debug_kernel.configure(tree, folder, CONFIGS)
        mark.write_text(digest)
    config = folder / ".config"
    run(tree / "scripts/config", "--file", config, "--set-val", "ETRACE", value)
    debug_kernel.make(tree, folder, "olddefconfig")
    if f"CONFIG_ETRACE={value}\n" not in config.read_text():
        raise ArchiveError(f"{tree}: Kconfig does not take CONFIG_ETRACE={value}")


def _keep(name: str, folder: Path) -> Path:
    """Put what was built where the next build leaves it."""
    kept = cache() / "images" / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    if name.endswith(MODULE):
        shutil.copy(folder / HOME / "etrace.ko", kept)
    return Path(shutil.copy(folder / "arch/x86/boot/bzImage", kept))


def install_selftest(name: str, into: Path) -> None:
    """Build the kselftest and install it with its runner into the folder `into`."""
    built = build(name)
    run("make", "-C", built.source, f"O={built.folder}", "headers")
    run("make", "-C", built.source / "tools/testing/selftests", "TARGETS=etrace", "install",
        f"O={built.folder}", f"INSTALL_PATH={into}",
        f"KHDR_INCLUDES=-isystem {built.folder}/usr/include")  # fmt: skip


def main(argv: list[str]) -> int:
    """Run as a program; see the head of this file."""
    try:
        for name in argv:
            print(build(name).image)
    except (ArchiveError, OSError) as error:
        print(f"tree_kernel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
