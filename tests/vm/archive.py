# SPDX-License-Identifier: Apache-2.0
"""Packages of other Debian suites, by apt's own client and without changing the machine.

The archive is the one that this machine's own sources name (tests/sources.py); only the suite
differs. apt-get works on a private directory. Facts: sources.list(5), apt.conf(5), debootstrap(8).
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import sources


class ArchiveError(Exception):
    """A package or tool cannot be had; the message says what to do about it."""


def cache() -> Path:
    """Return where kernels, build roots and their packages are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "etrace" / "vm"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time make what `name` stands for."""
    path = cache() / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(
    *command: str | Path,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    has_warnings: bool = False,
) -> str:
    """Run a command and return what it printed; its failure names it and its last lines.

    With `has_warnings` what it wrote to its standard error too, as make, sparse and modpost do.
    """
    words = [str(word) for word in command]
    tool(words[0])
    done = subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").splitlines()[-30:]
        raise ArchiveError(f"`{' '.join(words)}` failed ({done.returncode}):\n" + "\n".join(said))
    return (done.stdout + (done.stderr if has_warnings else b"")).decode(errors="replace")


PACKAGE_OF = {
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "aarch64-linux-gnu-objdump": "binutils-aarch64-linux-gnu",
    "arm-linux-gnueabihf-gcc": "gcc-arm-linux-gnueabihf",
    "chroot": "coreutils",
    "depmod": "kmod",
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-system-x86_64": "qemu-system-x86",
    "spatch": "coccinelle",
    "unshare": "util-linux",
}


def tool(name: str) -> Path:
    """Return the path of a program, also of one in a folder for root alone."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found:
        raise ArchiveError(f"{name} is missing: apt-get install {PACKAGE_OF.get(name, name)}")
    return Path(found)


class Suite:
    """One suite of the machine's archive, `bookworm` or another."""

    def __init__(self, name: str, architecture: str = "", kind: str = "deb") -> None:
        self.name = name
        self.architecture = architecture
        self.kind = kind  # or "deb-src"
        self.folder = cache() / "apt" / (name + architecture + kind.removeprefix("deb"))

    def _entries(self) -> list[sources.Entry]:
        """Return the machine's archives, or for another suite the first, asked for that one."""
        found = sources.entries()
        if any(self.name in entry.suites for entry in found):
            return found
        return [replace(found[0], suites=(self.name,))]

    @property
    def uri(self) -> str:
        """Return the archive's address."""
        return self._entries()[0].uris[0]

    def _apt(self, program: str, *args: str, cwd: Path | None = None) -> str:
        parts = self.folder / "sources"
        for folder in (
            parts,
            self.folder / "lists/partial",
            self.folder / "cache/archives/partial",
        ):
            folder.mkdir(parents=True, exist_ok=True)
        entries = [entry.stanza(self.kind) for entry in self._entries()]
        (parts / "suite.sources").write_text("\n".join(entries))
        options = {
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": str(parts),
            "Dir::State::Lists": str(self.folder / "lists"),
            "Dir::Cache": str(self.folder / "cache"),
            # the cache may lie where apt's own unprivileged user cannot reach
            "APT::Sandbox::User": pwd.getpwuid(os.getuid()).pw_name,
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "APT::Update::Error-Mode": "any",
        }
        if self.architecture:
            options["APT::Architecture"] = self.architecture
            options["APT::Architectures"] = self.architecture
        flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return run(program, "-q", *flags, *args, cwd=cwd)

    def update(self) -> None:
        """Fetch the lists of the suite."""
        self._apt("apt-get", "update")

    def depends(self, package: str) -> list[str]:
        """Return the names that `package` depends on, alternatives and all."""
        text = self._apt("apt-cache", "show", "--no-all-versions", package)
        line = re.search(r"^Depends: (.*)$", text, re.MULTILINE)
        return re.findall(r"(?:^|[,|] )([a-z0-9][a-z0-9.+-]+)", line[1]) if line else []

    def unpack(self, packages: Sequence[str], into: Path) -> None:
        """Download `packages` and unpack their files below `into`."""
        debs = into.with_name(into.name + ".deb")
        shutil.rmtree(debs, ignore_errors=True)
        debs.mkdir(parents=True)
        self._apt("apt-get", "download", *packages, cwd=debs)
        for deb in sorted(debs.iterdir()):
            run("dpkg-deb", "-x", deb, into)
        shutil.rmtree(debs)

    def changes(self, package: str, into: Path) -> Path:
        """Download what Debian adds to the source of `package` in the release itself."""
        into.mkdir(parents=True, exist_ok=True)
        # a mirror may list a source package of a later update that it does not have
        wanted = f"{package}/{self.name}"
        self._apt("apt-get", "source", "--download-only", "--diff-only", wanted, cwd=into)
        (path,) = into.glob("*.debian.tar.*")
        return path

    def bootstrap(self, include: Sequence[str], root: Path) -> None:
        """Make a root of the suite's own programs with `include`; needs uid 0."""
        if os.geteuid():
            raise ArchiveError(f"{root} needs debootstrap and chroot: run this as root")
        run("debootstrap", "--variant=minbase", f"--include={','.join(include)}", self.name, root,
            self.uri)  # fmt: skip
