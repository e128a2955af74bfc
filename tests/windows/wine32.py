# SPDX-License-Identifier: Apache-2.0
"""Wine for 64-bit and 32-bit programs, in a folder of its own and without changing the machine.

Debian's wine32 is a package of another architecture, which tests do not add to a machine. apt
fetches and checks it in a private directory; its loader and the few libraries that programs of the
console need are laid beside a copy of wine64's loader, as below /usr. Both must be of one
version.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import sources
from windows.wine import need

USR = Path("/usr")
SYSTEM64 = "lib/x86_64-linux-gnu/wine"
SYSTEM32 = "lib/i386-linux-gnu/wine"
NEEDED = (
    "advapi32", "gdi32", "imm32", "kernel32", "kernelbase", "msvcrt", "ntdll", "rpcrt4", "sechost",
    "ucrtbase", "user32", "version", "win32u", "ws2_32",
)  # fmt: skip


def _run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def _fetch(folder: Path) -> list[Path]:
    """Return the packages of wine64's version for i386, from the cache or from Debian."""
    version = _run("dpkg-query", "-W", "-f", "${Version}", "wine64", cwd=folder)
    kept = sources.cache_dir() / "wine32" / version
    if not kept.is_dir():
        _download(version, folder / "apt", kept)
    return sorted(kept.glob("*.deb"))


def _download(version: str, apt: Path, kept: Path) -> None:
    for part in ("sources", "state/lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True)
    archive = sources.entries()[0]
    release = sources.Entry(archive.uris, (min(archive.suites, key=len),), archive.trust)
    (apt / "sources/main.sources").write_text(release.stanza("deb"))
    options = {
        "Dir::Etc::SourceList": "/dev/null", "Dir::Etc::SourceParts": f"{apt}/sources",
        "Dir::State": f"{apt}/state", "Dir::Cache": f"{apt}/cache",
        "APT::Architecture": "i386", "APT::Architectures": "i386",
        "APT::Sandbox::User": pwd.getpwuid(os.getuid()).pw_name, "Acquire::Languages": "none",
    }  # fmt: skip
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    _run("apt-get", "-qq", *flags, "update", cwd=apt)
    names = [f"{name}={version}" for name in ("libwine", "wine32")]
    _run("apt-get", "-qq", *flags, "download", *names, cwd=apt)
    unfinished = kept.with_name(f"{kept.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for package in apt.glob("*.deb"):
        shutil.move(package, unfinished)
    unfinished.rename(kept)


def _unpack(package: Path, top: Path) -> None:
    """Unpack what is needed of a package below `top`."""
    libraries = [f"./usr/{SYSTEM32}/i386-windows/{name}.dll" for name in NEEDED]
    is_loader = package.name.startswith("wine32")
    wanted = ["./usr/lib/wine/wine"] if is_loader else [f"./usr/{SYSTEM32}/i386-unix", *libraries]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
    ) as unpacking:
        done = subprocess.run(
            ["tar", "-x", "-C", top, *wanted], stdin=unpacking.stdout, check=False
        )
    assert (unpacking.returncode, done.returncode) == (0, 0), package


def lay_out(folder: Path) -> Path:
    """Make a Wine for both word sizes below `folder`; return its loader."""
    need("/usr/lib/wine/wine64", "wine64")
    need("/lib/ld-linux.so.2", "libc6-i386")
    usr = folder / "usr"
    for package in _fetch(folder):
        _unpack(package, folder)
    for name in ("wine64", "wineserver64", "wineserver"):
        shutil.copy(USR / "lib/wine" / name, usr / "lib/wine")
    shutil.copytree(USR / SYSTEM64 / "x86_64-unix", usr / SYSTEM64 / "x86_64-unix")
    (usr / SYSTEM64 / "x86_64-windows").symlink_to(USR / SYSTEM64 / "x86_64-windows")
    (usr / "share").mkdir()
    (usr / "share/wine").symlink_to(USR / "share/wine")
    return usr / "lib/wine/wine64"


def add_libraries(prefix: Path, loader: Path) -> None:
    """Let a prefix that wine64 made have the libraries of 32-bit programs."""
    place = prefix / "drive_c/windows/syswow64"
    place.rmdir()
    place.symlink_to(loader.parents[2] / SYSTEM32 / "i386-windows")
