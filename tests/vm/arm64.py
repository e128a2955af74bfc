# SPDX-License-Identifier: Apache-2.0
"""The guest for arm64: compilers for its programs, a root in memory, and its QEMU.

virtme-ng gives a guest this machine's own files, which another architecture cannot execute. So the
guest's root is an initial RAM disk: Debian's static busybox for arm64, the programs where busybox
differs from what the scripts need, and the kernel modules that they load. guest/init.sh ends in the
same entry.sh as everywhere. The processor is QEMU's `max`, with the memory protections that arm64
has (PAN, pointer authentication, BTI) and 32-bit programs; pauth-impdef is its cheap hash.
"""

from __future__ import annotations

import lzma
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from vm.archive import Suite, run, tool

MACHINE = "aarch64"  # as uname -m says
MODULE_VARIABLES = ("CC=aarch64-linux-gnu-gcc", "CROSS_COMPILE=aarch64-linux-gnu-")
PROGRAM_VARIABLES = ("CC=aarch64-linux-gnu-gcc", "CC32=arm-linux-gnueabihf-gcc")
PACKAGES = ("busybox-static", "util-linux", "libc6", "libcap-ng0")
FILES = (
    "bin/busybox",
    "usr/bin/setpriv",
    "usr/bin/unshare",
    "lib/ld-linux-aarch64.so.1",
    "lib/aarch64-linux-gnu/libc.so.6",
    "lib/aarch64-linux-gnu/libcap-ng.so.0",
)
# of the work folder, by guest/init.sh, and of guest/servers.sh
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "fuse", "autofs4")
FOLDERS = ("dev", "proc", "sys", "run", "tmp")
TAG = "work"  # of the work folder, also in guest/init.sh


def unpack_userland(suite: Suite, path: Path) -> None:
    """Unpack the packages that the root is taken from."""
    suite.update()
    suite.unpack(PACKAGES, path)


def unpacked(userland: Path, name: str) -> Path:
    """Return a file of the packages; those of Debian 13 have everything below usr/."""
    path = userland / name
    return path if path.exists() else userland / "usr" / name


def make_initrd(userland: Path, modules: Path, init: Path, out: Path) -> None:
    """Make the root from unpacked packages, the kernel's folder of modules, and the init script."""
    root = out.with_name(out.name + ".root")
    shutil.rmtree(root, ignore_errors=True)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    for name in FILES:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(unpacked(userland, name), target)
    (root / "bin/sh").symlink_to("busybox")
    shutil.copy(init, root / "init")
    copy_modules(modules, root / "lib/modules" / modules.name)
    tool("busybox")
    script = 'cd "$1" && find . | busybox cpio -o -H newc -R 0:0 >"$2"'
    part = out.with_name(out.name + ".part")
    run("sh", "-c", script, "sh", root, part)
    part.rename(out)
    shutil.rmtree(root)


def copy_modules(modules: Path, target: Path) -> None:
    """Copy the modules that the guest loads, as busybox's modprobe wants them: not compressed."""
    lines = needed((modules / "modules.dep").read_text(), MODULES)
    for line in lines:
        file = line.partition(":")[0]
        content = (modules / file).read_bytes()
        copy = target / file.removesuffix(".xz")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(lzma.decompress(content) if file.endswith(".xz") else content)
    (target / "modules.dep").write_text("\n".join(lines).replace(".xz", "") + "\n")


def needed(dependencies: str, wanted: Iterable[str]) -> list[str]:
    """Return the lines of modules.dep for the `wanted` modules and for what they need."""
    lines = {line.partition(":")[0]: line for line in dependencies.splitlines()}
    files = {Path(file).name.partition(".")[0].replace("-", "_"): file for file in lines}
    found: dict[str, None] = {}
    for name in wanted:
        if name in files:  # else it is built in
            file, _, others = lines[files[name]].partition(":")
            found.update(dict.fromkeys([file, *others.split()]))
    return [lines[file] for file in sorted(found)]


def command(
    image: Path, initrd: Path, work: Path, script: Sequence[str], words: Iterable[str],
    qemu: Iterable[str], memory: str, cpus: int,
) -> list[str]:  # fmt: skip
    """Return QEMU's command; what follows `--` are arguments of guest/init.sh."""
    kernel = ["console=ttyAMA0", "panic=-1", *words, "--", str(work), *script]
    return [
        "qemu-system-aarch64", "-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on",
        "-smp", str(cpus), "-m", memory, "-nodefaults", "-no-reboot", "-display", "none",
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-virtfs", f"local,path={work},mount_tag={TAG},security_model=none,multidevs=remap",
        "-kernel", str(image), "-initrd", str(initrd), "-append", " ".join(kernel),
        *(part for option in qemu for part in shlex.split(option)),
    ]  # fmt: skip
