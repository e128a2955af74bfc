# SPDX-License-Identifier: Apache-2.0
"""Whether this tree can be released: `build-aux/release_check.py [--unreleased]`.

It stops at the first thing that is wrong and says how to put it right. Cheap checks come first.
docs/testing.md has the procedure.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import package_files
import packages
import windows_zip

from etrace.errors import EtraceError

TOP = Path(__file__).resolve().parents[1]
KINDS = ("deb", "wheel", "rpm", "arch", "windows")
WINDOWS_VERSION = re.compile(rb"windows-tracer (\d[^\s\0]*)\n")
ENTRY = re.compile(r"^## (.+)$", re.MULTILINE)
UNRELEASED = "Unreleased"


def said(*command: str | Path) -> str:
    """Return what a command prints; EtraceError when it fails."""
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    if done.returncode:
        shown = " ".join(map(str, command))
        raise EtraceError(f"{shown}: status {done.returncode}", done.stdout + done.stderr)
    return done.stdout


def check_tree() -> str:
    """Check that the tree holds what is committed and nothing else."""
    if changed := said("git", "status", "--porcelain"):
        raise EtraceError("the tree is not clean", f"commit or remove:\n{changed.rstrip()}")
    return f"the tree is clean at {said('git', 'rev-parse', '--short', 'HEAD').strip()}"


def check_changelog(page: str, version: str, *, unreleased: bool = False) -> str:
    """Check that the newest entry of the changelog is of this version and has a date."""
    found = ENTRY.search(page)
    newest = found[1] if found else ""
    if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", newest):
        return f"the changelog has {newest}"
    if unreleased and newest == UNRELEASED:
        return f"the changelog has entries for {version}, which are not released"
    raise EtraceError(
        f"CHANGELOG.md: its newest entry is {newest!r}",
        f"write `## {version} - YYYY-MM-DD` above what is released "
        f"(--unreleased takes `## {UNRELEASED}`)",
    )


def check_rendered() -> str:
    """Check that what is rendered from the format is what is committed."""
    said(sys.executable, "-m", "etrace.render", "--check")
    return "what is rendered is fresh"


def build(kind: str) -> Path:
    """Build one kind of packages; return their folder."""
    folder = TOP / "build/packages" / kind
    for old in folder.glob("*"):
        if old.is_file():
            old.unlink()
    if kind == "windows":
        said(sys.executable, TOP / "build-aux/windows_zip.py", "--output", folder)
    else:
        said(sys.executable, TOP / "build-aux/packages.py", kind, "--output", folder)
    return folder


def versions(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each package in a folder with the version that it says it has."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".deb":
            yield path.name, said("dpkg-deb", "-f", path, "Version").strip()
        elif path.suffix == ".rpm":
            yield path.name, said("rpm", "-qp", "--qf", "%{VERSION}-%{RELEASE}", path)
        elif path.name == "PKGBUILD":
            [found] = re.findall(r"^pkgver=(.*)$", path.read_text("utf-8"), re.MULTILINE)
            yield path.name, found
        elif path.suffix == ".whl" and path.parent == folder:
            with zipfile.ZipFile(path) as archive:
                [name] = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
                yield path.name, version_of(archive.read(name).decode())
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                stream = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
                yield path.name, version_of(stream.read().decode() if stream else "")
        elif path.suffix == ".zip":
            yield from versions_in_zip(path)


def versions_in_zip(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the version in the name of the tracer's zip, and those that its programs print."""
    yield path.name, path.stem.removeprefix("windows-tracer-")
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".exe"):
                found = WINDOWS_VERSION.search(archive.read(name))
                yield name, found[1].decode() if found else "none"


def version_of(metadata: str) -> str:
    """Return the version that the metadata of a Python package names."""
    found = re.search(r"^Version: (.+)$", metadata, re.MULTILINE)
    return found[1] if found else "none"


def check_versions(found: list[tuple[str, str]], version: str) -> str:
    """Check that each package has the version of the project, maybe with a revision."""
    wanted = re.compile(rf"{re.escape(version)}(-.*)?")
    wrong = [f"{name} is {said}" for name, said in found if not wanted.fullmatch(said)]
    if wrong or not found:
        raise EtraceError(
            f"packages of another version than {version}", "; ".join(wrong) or "there are none"
        )
    return f"{len(found)} packages are {version}"


def check_files() -> str:
    """Check that the RPM packages have the files of Debian's."""
    folder = TOP / "build/packages"
    debs = package_files.files_of_debs(folder / "deb")
    rpms = package_files.files_of_rpms(folder / "rpm")
    if unlike := list(package_files.differences(debs, rpms)):
        raise EtraceError("the RPM packages have other files than Debian's", "\n".join(unlike))
    return f"{len(debs)} RPM packages have the files of Debian's"


def check_zip(folder: Path, version: str) -> str:
    """Check that the tracer for Windows has both programs, its pages and its licences."""
    name = f"windows-tracer-{version}"
    expected = {f"{name}/{member}" for member in windows_zip.members(folder, folder)}
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path) as archive:
        found = set(archive.namelist())
        empty = [one.filename for one in archive.infolist() if not one.file_size]
    if unlike := sorted(found ^ expected) or empty:
        raise EtraceError(f"{path} has other files than it should", ", ".join(unlike))
    return f"{path.name} has {len(found)} files"


def checks(*, unreleased: bool) -> Iterator[str]:
    """Run every check; yield what each found."""
    version = packages.project_version()
    yield f"the version is {version}"
    page = (TOP / "CHANGELOG.md").read_text("utf-8")
    yield check_changelog(page, version, unreleased=unreleased)
    yield check_tree()
    yield check_rendered()
    for kind in KINDS:
        yield f"{kind}: {check_versions(list(versions(build(kind))), version)}"
    yield check_files()
    yield check_zip(TOP / "build/packages/windows", version)


def main() -> int:
    """Command line of `build-aux/release_check.py`."""
    parser = argparse.ArgumentParser(prog="build-aux/release_check.py")
    parser.add_argument("--unreleased", action="store_true", help="take an undated changelog")
    try:
        for line in checks(unreleased=parser.parse_args().unreleased):
            print(f"release-check: {line}", flush=True)
    except EtraceError as error:
        print(f"release-check: {error.message}\n  hint: {error.hint}", file=sys.stderr)
        return 1
    print("release-check: this tree can be released")
    return 0


if __name__ == "__main__":
    sys.exit(main())
