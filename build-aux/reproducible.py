# SPDX-License-Identifier: Apache-2.0
"""Build packages twice and compare their bytes: `build-aux/reproducible.py [KIND]...`.

Both builds are of a clone of HEAD. They differ in what must not matter: folder, umask, time zone,
language, home, seed of Python's hashes, number of processors, time of day. Files that record how a
build went (.buildinfo, .changes, source RPMs with the folder of the build) are not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
N_SHOWN = 20  # members of an archive
KINDS = ("arch", "deb", "dkms", "rpm", "wheel", "windows")
COMPARED = (".deb", ".dsc", ".whl", ".gz", ".xz", ".rpm", ".zip")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What one of the builds sees; `folder` is below the output folder."""

    folder: str
    umask: int
    variables: dict[str, str]
    processors: frozenset[int]


def both() -> tuple[Surroundings, Surroundings]:
    """Return two surroundings that differ in all that must not matter."""
    here = frozenset(os.sched_getaffinity(0))
    first = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1", "HOME": "/root"}
    second = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "2", "HOME": "/tmp"}  # noqa: S108
    return (
        Surroundings("a", 0o022, first, here),
        Surroundings("another/folder", 0o027, second, frozenset({min(here)})),
    )


def build(kind: str, around: Surroundings, out: Path) -> Path:
    """Build one kind of packages of a clone of HEAD; return the folder with the files."""
    clone = out / around.folder / "clone"
    made = out / around.folder / kind
    if kind == "dkms":
        command = ["make", "-s", "dkms-tree", f"DEST={made / 'tree'}"]
    else:
        program = ["windows_zip.py"] if kind == "windows" else ["packages.py", kind]
        command = [sys.executable, f"{clone}/build-aux/{program[0]}", *program[1:]]
        command += ["--output", str(made)]
    log = out / around.folder / f"{kind}.log"
    with log.open("wb") as stream:
        done = subprocess.run(
            command, cwd=clone, umask=around.umask,
            env=os.environ | {"CCACHE_DISABLE": "1"} | around.variables,
            stdout=stream, stderr=subprocess.STDOUT, check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, around.processors),
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"reproducible: {command[0]} failed with status {done.returncode}: see {log}")
    return made


def clone_head(around: Surroundings, out: Path) -> None:
    """Clone the tree as its user would have it with this umask."""
    place = out / around.folder / "clone"
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", str(TOP), str(place)], umask=around.umask, check=True)


def outputs(made: Path, kind: str) -> dict[str, Path]:
    """Return the files to compare, by their names."""
    if kind == "dkms":
        return {str(p.relative_to(made)): p for p in made.rglob("*") if p.is_file()}
    found = [*made.iterdir(), *made.glob("*/*.rpm")]  # rpmbuild has a folder for each architecture
    return {p.name: p for p in found if _is_compared(p)}


def _is_compared(path: Path) -> bool:
    return path.name == "PKGBUILD" or (path.suffix in COMPARED and ".src." not in path.name)


def sha256(content: bytes) -> str:
    """Return the checksum of a content in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def members(path: Path) -> dict[str, str]:
    """Return name -> mode, owner, time, checksum of what an archive holds; empty for others."""
    if path.suffix in (".whl", ".zip"):
        return dict(_zip_members(path))
    if path.suffix == ".deb":
        parts = [
            _said("dpkg-deb", part, str(path)) for part in ("--ctrl-tarfile", "--fsys-tarfile")
        ]
    elif path.suffix == ".rpm":
        parts = [_said("rpm2archive", "-n", "-", content=path.read_bytes())]
    elif path.suffix in (".gz", ".xz"):
        parts = [path.read_bytes()]
    else:
        return {}
    return {name: facts for part in parts for name, facts in _tar_members(part)}


def _said(*command: str, content: bytes = b"") -> bytes:
    return subprocess.run(command, check=True, input=content, stdout=subprocess.PIPE).stdout


def _zip_members(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        for one in archive.infolist():
            mode = oct(one.external_attr >> 16)
            yield one.filename, f"{mode} {one.date_time} {sha256(archive.read(one))}"


def _tar_members(content: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for one in archive:
            stream = archive.extractfile(one) if one.isfile() else None
            digest = sha256(stream.read()) if stream else one.linkname
            yield one.name, f"{one.mode:o} {one.uname}:{one.gname} {one.mtime} {digest}"


def differences(one: dict[str, Path], other: dict[str, Path]) -> Iterator[str]:
    """Yield a line for each file that only one build made, or that differs, and what in it does."""
    for name in sorted(one.keys() ^ other.keys()):
        yield f"{name}: only one of the builds made it"
    for name in sorted(one.keys() & other.keys()):
        if one[name].read_bytes() == other[name].read_bytes():
            continue
        yield f"{name}: differs"
        held, held_too = members(one[name]), members(other[name])
        unlike = [m for m in sorted(held | held_too) if held.get(m) != held_too.get(m)]
        for member in unlike[:N_SHOWN]:
            yield f"    {member}: {held.get(member)} and {held_too.get(member)}"
        if len(unlike) > N_SHOWN:
            yield f"    and {len(unlike) - N_SHOWN} more"


def main() -> int:
    """Build and compare; 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="build-aux/reproducible.py", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="default: all")
    parser.add_argument("--output", type=Path, default=TOP / "build/reproducible")
    args = parser.parse_args()
    if unknown := set(args.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    for around in both():
        clone_head(around, args.output)
    found = []
    for kind in args.kinds or KINDS:
        made = [outputs(build(kind, around, args.output), kind) for around in both()]
        found += list(differences(*made))
        for name, path in sorted(made[0].items()) if kind != "dkms" else ():
            print(sha256(path.read_bytes()), name)
    print(*found, "reproducible: " + ("the builds differ" if found else "the same bytes"), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
