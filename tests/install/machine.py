# SPDX-License-Identifier: Apache-2.0
"""A Debian machine with systemd and the distribution's kernel, booted by QEMU without KVM.

mmdebstrap makes the root of a suite once; it is kept in the cache beside the minimal ones. A root
is prepared as any other (bare/root.py), becomes a disk, and boots with the kernel and the initial
root that Debian put into it. Its last unit runs a list of steps as a user of the machine would at a
terminal. What they print comes by the second serial line, between two marks each.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bare.root import cache, tarball
from bare.step import ROOT, Step

PACKAGES = (
    "systemd-sysv", "dbus", "udev", "kmod", "procps", "python3", "make", "gcc", "libc6-dev",
    "initramfs-tools", "linux-image-amd64", "linux-headers-amd64", "ca-certificates",
)  # fmt: skip
#: the initial root: as little as finds the disk
INITIAL = (
    'mkdir -p "$1/etc/initramfs-tools/conf.d" &&'
    ' echo MODULES=list >"$1/etc/initramfs-tools/conf.d/machine" &&'
    " printf '%s\\n' virtio_pci virtio_blk ext4 crc32c >\"$1/etc/initramfs-tools/modules\""
)
DISK_SIZE = "6G"
SERVICE = """[Unit]
After=multi-user.target
[Service]
Type=exec
Environment=HOME=/root TERM=dumb
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
ExecStart=/etc/machine/steps
ExecStopPost=/bin/systemctl --no-block poweroff
"""
#: no carriage returns; the kernel's clock goes on while the emulator waits for a processor
STEPS = "#!/bin/bash\nstty -F /dev/ttyS1 -opost\nsystemctl is-system-running --wait\n"
DOWN = b"reboot: Power down"  # a kernel that crashed may leave the emulator without it
WORDS = (
    "root=/dev/vda", "rw", "console=ttyS0", "rcupdate.rcu_cpu_stall_timeout=300",
    "systemd.default_timeout_start_sec=600", "systemd.default_device_timeout_sec=600",
)  # fmt: skip


class MachineError(Exception):
    """The machine did not power off by itself; the message has its last words."""


def base(suite: str) -> Path:
    """Return the tarball of a machine's root."""
    return tarball(suite, cache() / f"{suite}-machine.tar", PACKAGES, f"--essential-hook={INITIAL}")


def prepare(root: Path, steps: Sequence[Step]) -> None:
    """Let a root run the steps when it has booted, and then power off."""
    folder = root / "etc/machine"
    folder.mkdir()
    lines = []
    for i, step in enumerate(steps):
        script = folder / f"{i}"
        script.write_text(f"cd\n{step.command}\n")
        script.chmod(0o755)
        user = shlex.quote(step.user.name)
        become = "" if step.user == ROOT else f"runuser -l {user} -c "
        command = f"bash -l /etc/machine/{i}"
        lines += [
            f"echo '@begin {i}'",
            f"{become}{shlex.quote(command) if become else command} </dev/null 2>&1",
            f'echo "@end {i} $? $SECONDS"',
        ]
    (folder / "steps").write_text(STEPS + "\n".join(lines) + "\n")
    (folder / "steps").chmod(0o755)
    (root / "etc/systemd/system/machine.service").write_text(SERVICE)
    for folder_name in ("dev", "proc", "sys", "run"):
        (root / folder_name).mkdir(exist_ok=True)
    wanted = root / "etc/systemd/system/multi-user.target.wants"
    wanted.mkdir(parents=True, exist_ok=True)
    (wanted / "machine.service").symlink_to("../machine.service")
    (root / "etc/fstab").write_text("")
    (root / "etc/hostname").write_text("machine\n")


def disk(root: Path, path: Path) -> None:
    """Write a file system with the files of a root."""
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, path, DISK_SIZE],
        check=True,
    )


def boot(root: Path, folder: Path, seconds: float) -> str:
    """Boot the disk in `folder` with the root's kernel until it powers off; return what it printed.

    The console is in `folder`/console.log.
    """
    [kernel] = (root / "boot").glob("vmlinuz-*")
    [initial] = (root / "boot").glob("initrd.img-*")
    said, console = folder / "steps.log", folder / "console.log"
    command: list[str | Path] = [
        "qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "2G",
        "-nodefaults", "-no-reboot", "-display", "none",
        "-kernel", kernel, "-initrd", initial, "-append", " ".join(WORDS),
        "-drive", f"file={folder / 'disk'},format=raw,if=virtio,cache=unsafe",
        "-serial", f"file:{console}", "-serial", f"file:{said}",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        how = f"still runs after {seconds:.0f} s"
    else:
        how = "" if DOWN in console.read_bytes() else "was reset"
    if how:
        last = console.read_text(errors="replace").splitlines()[-60:]
        raise MachineError("\n".join([*last, f"the machine {how}; console: {console}"]))
    return said.read_text(errors="replace")
