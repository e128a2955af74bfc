# SPDX-License-Identifier: Apache-2.0
"""Compare the files of RPM packages with those of Debian's: `build-aux/package_files.py DEBS RPMS`.

Each package has the same files in both kinds, but for DIFFERENCES, which says why.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: which paths only one kind has, whatever the package: kind, pattern, reason
DIFFERENCES = (
    ("deb", r"/usr/share/doc/[^/]+/(changelog(\.Debian)?|README\.md)\.gz", "Debian's documents"),
    ("deb", r"/usr/share/doc/[^/]+/copyright", "RPMs have the licences"),
    ("deb", r"/usr/share/doc-base/etrace.*", "Debian's index of documents"),
    ("deb", r"/usr/share/lintian/overrides/.*", "of Debian's checker"),
    ("deb", r"/etc/kernel/header_postinst\.d/etrace", "headers come with the kernel's RPM"),
    ("rpm", r"/usr/lib/kernel/install\.d/40-etrace\.install", "kernel-install is not Debian's"),
    ("rpm", r"/usr/share/licenses/.*", "Debian has one copyright file"),
    ("rpm", r"/usr/share/doc/[^/]+/(README|CHANGELOG)\.md", "Debian compresses them"),
    ("rpm", r"/usr/lib/\.build-id(/.*)?", "Debian's are in dbgsym packages"),
)
#: one name for paths that the kinds put elsewhere: pattern, replacement
PLACES = (
    (r"/usr/share/zsh/vendor-completions/", "/usr/share/zsh/site-functions/"),
    (r"^/lib/systemd/", "/usr/lib/systemd/"),  # of Debian 12
    (r"^(/usr/share/man/.*)\.gz$", r"\1"),
    # where Debian's own rpmbuild puts documents
    (r"^/usr/share/(doc|licenses)/([a-z0-9-]+)-\d[\d.]*/", r"/usr/share/\1/\2/"),
)


def said(*command: str | Path) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def files_of_debs(folder: Path) -> dict[str, set[str]]:
    """Return the files of each Debian package in a folder."""
    found = {}
    for path in folder.glob("*.deb"):
        lines = said("dpkg-deb", "-c", path).splitlines()
        names = [line.split(None, 5)[5].split(" -> ")[0] for line in lines]
        found[said("dpkg-deb", "-f", path, "Package").strip()] = _files(n[1:] for n in names)
    return {name: files for name, files in found.items() if not name.endswith("-dbgsym")}


def files_of_rpms(folder: Path) -> dict[str, set[str]]:
    """Return the files of each binary RPM package below a folder."""
    found = {}
    for path in folder.rglob("*.rpm"):
        if not path.name.endswith(".src.rpm"):
            lines = said("rpm", "-qp", "--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]", path)
            names = [line.split(" ", 1) for line in lines.splitlines()]
            listed = (name for mode, name in names if not mode.startswith("d"))
            found[said("rpm", "-qp", "--qf", "%{NAME}", path)] = _files(listed)
    return {
        n: files for n, files in found.items() if not n.endswith(("-debuginfo", "-debugsource"))
    }


def _files(names: Iterator[str]) -> set[str]:
    return {_place(name) for name in names if not name.endswith("/")}


def _place(name: str) -> str:
    for pattern, replacement in PLACES:
        name = re.sub(pattern, replacement, name)
    return name


def is_explained(kind: str, name: str) -> bool:
    """Return whether DIFFERENCES has a reason why only this kind of packages has a file."""
    return any(kind == k and re.fullmatch(pattern, name) for k, pattern, _ in DIFFERENCES)


def differences(debs: dict[str, set[str]], rpms: dict[str, set[str]]) -> Iterator[str]:
    """Yield what only one kind of packages has and nothing explains."""
    for package in sorted(debs.keys() ^ rpms.keys()):
        yield f"{package}: only as {'a deb' if package in debs else 'an RPM'}"
    for package in sorted(debs.keys() & rpms.keys()):
        for kind, one, other in (("deb", debs, rpms), ("rpm", rpms, debs)):
            for name in sorted(one[package] - other[package]):
                if not is_explained(kind, name):
                    yield f"{package}: {name}: only in the {kind}"


def main() -> int:
    """Command line of `build-aux/package_files.py`; 1 when the files differ."""
    parser = argparse.ArgumentParser(prog="build-aux/package_files.py")
    parser.add_argument("debs", type=Path)
    parser.add_argument("rpms", type=Path)
    args = parser.parse_args()
    debs, rpms = files_of_debs(args.debs), files_of_rpms(args.rpms)
    found = list(differences(debs, rpms))
    print(
        *found, *(f"{name}: {len(files)} files" for name, files in sorted(debs.items())), sep="\n"
    )
    return 1 if found or not debs else 0


if __name__ == "__main__":
    sys.exit(main())
