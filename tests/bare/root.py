# SPDX-License-Identifier: Apache-2.0
"""Minimal Debian roots that never saw this project, and commands in them. Needs root.

mmdebstrap makes the base of a suite once; it is kept in the cache as a tarball. A root is unpacked
from it, gets what this machine needs to reach its archives (resolver, certificates, apt's and pip's
settings, environment variables), and is removed afterwards. A command runs in mount and process
namespaces of its own, so that no mount and no process is left over. What apt and pip downloaded
is kept in the cache too; nothing installed is. A run that was killed leaves its root: the next
one removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import sources
from bare.step import User

TOP = Path(__file__).resolve().parents[2]
ROOTS, PREFIX = Path("/var/tmp"), "etrace-bare-"
SECONDS_UNHELD = 60  # a root younger than this may belong to a run that does not hold it yet
PACKAGES = ("python3", "gcc", "make", "git", "ca-certificates")
#: with which a machine says how its archives are reached
PASSED_ON = (
    "http_proxy", "https_proxy", "no_proxy", "PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY",
)  # fmt: skip
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = Path("usr/local/share/ca-certificates")
ARCHIVES = Path("var/cache/apt/archives")
#: ROOT COMMAND...: mounts what a machine has and runs the command, whose end is that of all others.
#: The root is the root of the mount namespace: the kernel refuses user namespaces in a chroot.
ENTER = """
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
if [ -n "$PIP_CACHE" ]; then
	mkdir -p "$root/root/.cache/pip"
	mount --bind "$PIP_CACHE" "$root/root/.cache/pip"
fi
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i "$@"
"""


def cache() -> Path:
    """Return where bases and downloads are kept: `$ETRACE_CACHE/bare`, or below /var/cache."""
    return Path(os.environ.get("ETRACE_CACHE") or "/var/cache/etrace") / "bare"


@contextmanager
def fresh_root(suite: str) -> Iterator[Path]:
    """Unpack a new root of `suite`; it is gone at the end."""
    with unpacked(suite, base(suite)) as root:
        _leave_out_initramfs(root)
        yield root


@contextmanager
def unpacked(suite: str, made: Path) -> Iterator[Path]:
    """Unpack the tarball of a root of `suite`; the root is gone at the end."""
    remove_left()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{suite}-", dir=ROOTS))
    root = folder / "root"
    held = _hold(folder)
    try:
        root.mkdir()
        subprocess.run(["tar", "-xf", made, "-C", root], check=True)
        root.chmod(0o755)
        _connect(root)
        _offer_downloads(suite, root)
        yield root
    finally:
        with suppress(OSError):
            _keep_downloads(suite, root)
        _remove(folder)
        os.close(held)


def remove_left() -> None:
    """Remove the roots of runs that were killed: those that no process holds."""
    for folder in ROOTS.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another run has removed it, or holds it
            if time.time() - folder.stat().st_mtime < SECONDS_UNHELD:
                continue
            held = _hold(folder)
            _remove(folder)
            os.close(held)


def _hold(folder: Path) -> int:
    """Lock a folder until the descriptor is closed. OSError when another process has it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def _remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)


def base(suite: str) -> Path:
    """Return the tarball of a suite, made whole or not at all."""
    return tarball(suite, cache() / f"{suite}-{'-'.join(PACKAGES)}.tar", PACKAGES)


def tarball(suite: str, path: Path, packages: Iterable[str], *options: str) -> Path:
    """Return a tarball of a minimal root with `packages`, made whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            listed, part = Path(folder, "suite.sources"), Path(folder, "base.tar")
            listed.write_text(_archives(suite))
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}",
                 *options, suite, part, listed], check=True,
            )  # fmt: skip
            part.rename(path)
    return path


def _archives(suite: str) -> str:
    """Return this machine's archives, for another suite."""
    entries = sources.entries()
    ours = min(entries[0].suites, key=len)
    return "\n".join(
        replace(e, suites=tuple(s.replace(ours, suite, 1) for s in e.suites)).stanza("deb")
        for e in entries
    )


def _connect(root: Path) -> None:
    """Let a root reach what this machine reaches."""
    for name in ("resolv.conf", "hosts", "pip.conf"):
        with suppress(FileNotFoundError):
            shutil.copy(f"/etc/{name}", root / "etc")
    settings = subprocess.run(["apt-config", "dump", "Acquire"], check=True, capture_output=True)
    (root / "etc/apt/apt.conf.d/99machine").write_bytes(settings.stdout)
    # a root lives for minutes: dpkg need not wait for the disk
    (root / "etc/dpkg/dpkg.cfg.d/99machine").write_text("force-unsafe-io\n")
    shutil.copytree("/" / CERTIFICATES, root / CERTIFICATES, dirs_exist_ok=True)
    subprocess.run(["chroot", root, "update-ca-certificates"], check=True, capture_output=True)


def _leave_out_initramfs(root: Path) -> None:
    """Have no initial RAM disk made: it takes a minute, twice, and nothing boots from it."""
    tool = "/usr/sbin/update-initramfs"
    divert = ["dpkg-divert", "--quiet", "--local", "--no-rename", "--divert", f"{tool}.real", tool]
    subprocess.run(["chroot", root, *divert], check=True)
    stub = root / tool[1:]
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o755)


def _offer_downloads(suite: str, root: Path) -> None:
    """Put the packages that apt downloaded before where it looks for them."""
    kept = cache() / f"{suite}-packages"
    kept.mkdir(parents=True, exist_ok=True)
    for path in kept.glob("*.deb"):
        _share(path, root / ARCHIVES / path.name)


def _keep_downloads(suite: str, root: Path) -> None:
    """Keep the packages that apt downloaded."""
    kept = cache() / f"{suite}-packages"
    for path in (root / ARCHIVES).glob("*.deb"):
        if not (kept / path.name).exists():
            with tempfile.TemporaryDirectory(dir=kept) as folder:
                _share(path, Path(folder, path.name))
                Path(folder, path.name).rename(kept / path.name)


def _share(path: Path, copy: Path) -> None:
    """Make a copy of a package, which nobody writes to: the same file where that can be."""
    try:
        copy.hardlink_to(path)
    except OSError:
        shutil.copy2(path, copy)


def add_user(root: Path, user: User) -> None:
    """Make a user, and give it the rights that it has."""
    number = user.number
    for name, line in (
        ("passwd", f"{user.name}:x:{number}:{number}::{user.home}:/bin/bash"),
        ("group", f"{user.name}:x:{number}:"),
        ("shadow", f"{user.name}:*:20000:0:99999:7:::"),
    ):
        with (root / "etc" / name).open("a") as file:
            file.write(line + "\n")
    home = root / user.home[1:]
    home.mkdir()
    os.chown(home, number, number)
    if user.sudo:
        rules = root / "etc/sudoers.d" / user.name
        rules.parent.mkdir(mode=0o750, exist_ok=True)  # sudo itself is installed later
        rules.write_text(f"{user.name} {user.sudo}\n")
        rules.chmod(0o440)


def clone(root: Path, user: User) -> None:
    """Clone this tree into the folder `project` of a user's home."""
    place = root / user.home[1:] / "project"
    if not place.exists():
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", TOP, place], check=True)
        subprocess.run(["chown", "-R", f"{user.number}:{user.number}", place], check=True)


def run(root: Path, user: User, command: str, output: IO[bytes]) -> int:
    """Run a command of the shell as `user` in the home folder; return its status."""
    shared = cache() / "pip" if user.number == 0 else None
    if shared:
        shared.mkdir(parents=True, exist_ok=True)
    environment = [f"{name}={os.environ[name]}" for name in PASSED_ON if name in os.environ]
    words: list[str | Path] = [
        *environment, f"HOME={user.home}", f"USER={user.name}", f"PATH={PATH}", "LANG=C.UTF-8",
        "CI=1",  # examples of tests are the same in each run
        "chroot", f"--userspec={user.number}:{user.number}", "--groups=", "/",
        "bash", "-c", f"cd && {command}\nexit $?",  # it stays: process 1 has to reap orphans
    ]  # fmt: skip
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
         "bash", "-ec", ENTER, "enter", root, *words],
        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
        env={**os.environ, "PIP_CACHE": str(shared or "")},
    ).returncode  # fmt: skip
