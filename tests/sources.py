# SPDX-License-Identifier: Apache-2.0
"""Upstream sources of Debian packages, through apt's own client and without changing the machine.

The machine's own sources (one-line `.list` and deb822 `.sources`) are read, the entries of its
distribution are written as `deb-src` into a private directory, and apt-get works on that directory
only: no root, no system-wide list, no lock of the system. Signatures are checked as always.
Facts: sources.list(5), apt.conf(5).

    python3 tests/sources.py lua5.4 DIR     unpacks under DIR and prints the tree's path
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APT_ETC = Path("/etc/apt")
# Fields of an entry that decide how its signature is checked.
TRUST_FIELDS = ("Signed-By", "Trusted")
# Names of the tarball in a source package: upstream's own, or that of a package native to Debian.
ORIGINAL = re.compile(r".+\.orig\.tar\.(gz|bz2|xz)")
NATIVE = re.compile(r"[^_]+_[^_]+(?<!\.debian)\.tar\.(gz|bz2|xz)")


class SourceError(Exception):
    """A source package cannot be had; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One archive: where it is, which suites are taken and who signs it."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    trust: tuple[tuple[str, str], ...] = ()

    def stanza(self, kind: str) -> str:
        """Return the entry in deb822 for the packages (`deb`) or sources (`deb-src`) of `main`."""
        fields = [
            ("Types", kind),
            ("URIs", " ".join(self.uris)),
            ("Suites", " ".join(self.suites)),
            ("Components", "main"),
            *self.trust,
        ]
        return "".join(f"{name}: {value}\n" for name, value in fields)


def cache_dir() -> Path:
    """Return where downloads are kept: `$ETRACE_CACHE`, or `build/cache` of the tree."""
    return Path(os.environ.get("ETRACE_CACHE") or ROOT / "build" / "cache")


def fetch(package: str, into: Path | None = None) -> Path:
    """Unpack the upstream source of `package` and return the top of its tree.

    Without `into` the tree is in the cache and is shared: do not build there.
    """
    archive = tarball(package)
    if into is not None:
        return _unpack(archive, into)
    with locked(cache_dir() / "sources.lock"):
        target = cache_dir() / "trees" / package
        if target.is_dir():
            return _top(target)
        staging = _fresh(target.with_name(f"{package}.part"))
        _unpack(archive, staging)
        return _top(staging.rename(target))


def tarball(package: str) -> Path:
    """Download the upstream tarball of `package` unless it is cached; return its path."""
    folder = cache_dir() / "sources" / package
    with locked(cache_dir() / "sources.lock"):
        if not folder.is_dir():
            _download(package, folder)
    for name in (ORIGINAL, NATIVE):
        for path in sorted(folder.iterdir()):
            if name.fullmatch(path.name):
                return path
    raise SourceError(f"{package}: no upstream tarball in {folder}; remove it and try again")


def entries(etc: Path = APT_ETC, codename: str | None = None) -> list[Entry]:
    """Return the archives of this machine's own distribution, as apt is set up to use them."""
    name = codename or machine_codename()
    found: dict[Entry, None] = {}
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    for file in files:
        if not file.is_file() or file.suffix not in {".list", ".sources"}:
            continue
        text = file.read_text()
        parsed = _parse_deb822(text) if file.suffix == ".sources" else _parse_one_line(text)
        for entry in parsed:
            suites = tuple(s for s in entry.suites if s == name or s.startswith(f"{name}-"))
            if suites:
                found[Entry(entry.uris, suites, entry.trust)] = None
    if not found:
        raise SourceError(f"{etc}: no archive of {name!r}; add one to {etc}/sources.list")
    return list(found)


def machine_codename() -> str:
    """Return the name of this machine's suite."""
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    raise SourceError("/etc/os-release names no VERSION_CODENAME; this needs Debian or Ubuntu")


def _parse_one_line(text: str) -> Iterator[Entry]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words or words[0] not in {"deb", "deb-src"}:
            continue
        options, rest = _split_options(words[1:])
        trust = tuple((n, options[n.lower()]) for n in TRUST_FIELDS if n.lower() in options)
        if "main" in rest[2:]:
            yield Entry((rest[0],), (rest[1],), trust)


def _split_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    if not words or not words[0].startswith("["):
        return {}, words
    end = next(i for i, word in enumerate(words) if word.endswith("]"))
    options = " ".join(words[: end + 1]).strip("[] ").split()
    pairs = (option.partition("=") for option in options)
    return {name.lower(): value for name, _, value in pairs}, words[end + 1 :]


def _parse_deb822(text: str) -> Iterator[Entry]:
    for fields in _stanzas(text.splitlines()):
        if fields.get("enabled", "yes").lower() in {"no", "false", "without", "off", "disable"}:
            continue
        if "main" not in fields.get("components", "").split():
            continue
        trust = tuple((n, fields[n.lower()]) for n in TRUST_FIELDS if n.lower() in fields)
        yield Entry(tuple(fields["uris"].split()), tuple(fields["suites"].split()), trust)


def _stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    last = ""
    for line in [*lines, ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields = {}
        elif line[0] in " \t":
            fields[last] += "\n" + line
        else:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            fields[last] = value.strip()


def _apt_get(*args: str, cwd: Path) -> None:
    apt = cache_dir() / "apt"
    for part in ("etc/sources", "state/lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "etc/sources/machine.sources").write_text(
        "\n".join(e.stanza("deb-src") for e in entries())
    )
    options = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": f"{apt}/etc/sources",
        "Dir::State": f"{apt}/state",
        "Dir::State::Lists": f"{apt}/state/lists",
        "Dir::Cache": f"{apt}/cache",
        # the private folder may lie where apt's own unprivileged user cannot reach
        "APT::Sandbox::User": pwd.getpwuid(os.getuid()).pw_name,
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "APT::Update::Error-Mode": "any",
    }
    flags = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    command = ["apt-get", "-qq", *flags, *args]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SourceError(
            f"apt-get {' '.join(args)} failed ({done.returncode}): {done.stderr.strip()}\n"
            f"the sources it used: {apt}/etc/sources/machine.sources"
        )


def _download(package: str, folder: Path) -> None:
    if not shutil.which("apt-get"):
        raise SourceError(f"{package}: no apt-get here; sources come from Debian's archive")
    staging = _fresh(folder.with_name(f"{package}.part"))
    get = ("source", "--download-only", "--tar-only", "--only-source", package)
    if any((cache_dir() / "apt/state/lists").glob("*_Sources*")):
        with suppress(SourceError):  # the lists may be older than what the archive has now
            _apt_get(*get, cwd=staging)
            staging.rename(folder)
            return
    _apt_get("update", cwd=staging)
    try:
        _apt_get(*get, cwd=staging)
    except (
        SourceError
    ):  # a mirror can list an update that it does not have: the release has one too
        suite = min(entries()[0].suites, key=len)
        _apt_get(*get[:-1], f"{package}/{suite}", cwd=staging)
    staging.rename(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack into `folder`, which may hold other trees; return the top of this one."""
    with tarfile.open(archive) as tar:
        tops = {name.split("/")[0] for name in tar.getnames()}
        if hasattr(tarfile, "data_filter"):  # Python before 3.11.4 has none
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)
    return folder / tops.pop() if len(tops) == 1 else folder


def _top(tree: Path) -> Path:
    names = list(tree.iterdir())
    return names[0] if len(names) == 1 and names[0].is_dir() else tree


def main(argv: list[str]) -> int:
    """Run as a program: `PACKAGE DIR`."""
    if len(argv) != 2:
        print("usage: sources.py PACKAGE DIR", file=sys.stderr)
        return 2
    try:
        print(fetch(argv[0], Path(argv[1])))
    except (SourceError, OSError) as error:
        print(f"sources.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
