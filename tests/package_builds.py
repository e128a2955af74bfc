# SPDX-License-Identifier: Apache-2.0
"""Real packages built with depfiles under `etrace run`, parsed and post-processed.

A package is built in FOLDER/build; its database lies beside it, in FOLDER. Sources: Debian's
archive (tests/sources.py). The depfiles (`-MD`) are what the compilers say that they read.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sources
from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.query.deps import deps

BIN = Path(sys.executable).parent
WRITES = 0b11


@dataclass(frozen=True, slots=True)
class Package:
    """What is built, and how; `prepare` runs before capture begins.

    `generated` says what may stand behind an object though no depfile names it, since generators
    read it: expressions for whole paths, in which <tree> is the build tree, each with a reason.
    """

    name: str
    source: str  # package in Debian's archive
    script: str
    n_objects: int  # that have a depfile, at least
    modules: tuple[str, ...]  # some of them, as globs: each finds one that is no link
    prepare: str = ""
    generated: tuple[tuple[str, str], ...] = ()


def run(command: list[str | Path], cwd: Path) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = (done.stdout + done.stderr)[-3000:].decode(errors="replace")
    assert done.returncode == 0, f"{command}: {said}"


def states(tree: Path) -> dict[str, tuple[str, int, int]]:
    """Return checksum or target, mode and mtime in ns of everything below `tree`."""
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = str(path.readlink())
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(tree))] = (content, status.st_mode, status.st_mtime_ns)
    return found


class Built:
    """A package that was built: its tree, its database, what was there before `cas pp`."""

    def __init__(self, package: Package, folder: Path) -> None:
        self.package, self.folder, self.tree = package, folder, folder / "build"
        sources.fetch(package.source, folder / "unpacked").rename(self.tree)
        trace = folder / ".nfsdb"
        if package.prepare:
            run(["sh", "-e", "-c", package.prepare], self.tree)
        script = ["sh", "-e", "-c", package.script]
        run([BIN / "etrace", "run", "-o", folder, "--", *script], self.tree)
        run([BIN / "etrace_parser", trace, folder / ".nfsdb.json"], folder)
        self.before = states(self.tree)
        run([BIN / "cas", "pp", "--dbdir", folder], folder)
        self.after = states(self.tree)

    @cached_property
    def image(self) -> Image:
        """The database."""
        return open_database(self.folder)

    @cached_property
    def _dependencies(self) -> Dependencies:
        return Dependencies(self.image)

    def deps(self, path: Path, *, is_direct: bool = False) -> set[str]:
        """Return what `cas deps` finds for one file."""
        rules = Rules(is_direct=is_direct)
        return {os.fsdecode(name) for name in deps(self._dependencies, [bytes(path)], rules)}

    def is_written(self, path: Path) -> bool:
        """Tell whether the traced part of the build wrote a file."""
        row = self.image.find_path(bytes(path))
        return row >= 0 and any(
            self.image["opens"]["mode"][self.image["path_opens"]["open"][at]] & WRITES
            for at in self.image["paths"].span("opens.start", row)
        )

    def writer_cwd(self, path: Path) -> Path:
        """Return the working directory of what wrote a file: depfiles are relative to it."""
        image = self.image
        row = image.find_path(bytes(path))
        assert row >= 0, f"{path}: not in the database"
        opens = image["opens"]
        for at in image["paths"].span("opens.start", row):
            use = image["path_opens"]["open"][at]
            if opens["mode"][use] & WRITES:
                cwd = image["executions"]["cwd"][opens["execution"][use]]
                return Path(os.fsdecode(image.string(cwd)))
        raise AssertionError(f"{path}: the database knows nobody who wrote it")

    @cached_property
    def depfiles(self) -> list[Depfile]:
        """All depfiles of the tree."""
        found = [
            Depfile(path, self.writer_cwd(path), target, names)
            for path in sorted(self.tree.rglob("*.d"))
            if path.is_file() and self.is_written(path)
            for target, names in rules_of(path.read_text())
        ]
        assert len(found) >= self.package.n_objects
        return found

    @cached_property
    def programs(self) -> set[str]:
        """Every program that was run."""
        binaries = {row for row in self.image["executions"]["binary"] if row >= 0}
        return {os.fsdecode(self.image.path_string(row)) for row in binaries}

    @cached_property
    def named_modules(self) -> list[Path]:
        """The files that the package names as modules."""
        found = []
        for name in self.package.modules:
            (path,) = (path for path in self.tree.glob(name) if not path.is_symlink())
            found.append(path)
        return found

    @cached_property
    def modules(self) -> set[Path]:
        """The linked modules that `cas pp` found."""
        rows = set(self.image["linked"]["path"])
        return {Path(os.fsdecode(self.image.path_string(row))) for row in rows}


@dataclass(frozen=True, slots=True)
class Depfile:
    """One rule of a depfile; names as they stand there."""

    path: Path
    cwd: Path
    target: str
    names: tuple[str, ...]

    @property
    def object(self) -> Path:
        """The file that was made: beside X.o.d it is X.o, whatever CMake calls it in there."""
        if self.path.name.endswith(".o.d"):
            return self.path.with_suffix("")
        return (self.cwd / self.target).resolve()

    @property
    def source(self) -> Path:
        """The translation unit."""
        return (self.cwd / self.names[0]).resolve()

    @property
    def files(self) -> set[str]:
        """Everything that was read, resolved."""
        return {str((self.cwd / name).resolve()) for name in self.names}


def rules_of(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rules of a depfile that have prerequisites: (target, prerequisites)."""
    for line in text.replace("\\\n", " ").splitlines():
        target, colon, rest = line.partition(": ")
        if colon and rest.strip():
            names = rest.replace("\\ ", "\0").split()
            yield target.strip(), tuple(name.replace("\0", " ") for name in names)
