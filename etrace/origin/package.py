# SPDX-License-Identifier: Apache-2.0
"""A package of a distribution or of a language, and its purl.

Format: package-url/purl-spec, "Package-URL specification v1.0.X".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from etrace.compilers.regular_file import read_regular
from etrace.texts import text_of

#: of a file that describes a package
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """What a database says of a package; empty where it does not say it.

    `kind` is the type of the purl: deb, rpm, pypi, npm, cargo. `licence` is as the database has it.
    """

    kind: str
    name: str
    version: str = ""
    architecture: str = ""
    namespace: str = ""
    supplier: str = ""
    licence: str = ""
    distribution: str = ""
    epoch: str = ""

    @property
    def purl(self) -> str:
        """Return the package URL."""
        namespace = "".join(f"{_quoted(part)}/" for part in self.namespace.split("/") if part)
        version = f"@{_quoted(self.version)}" if self.version else ""
        said = {"arch": self.architecture, "distro": self.distribution, "epoch": self.epoch}
        qualifiers = "&".join(f"{key}={_quoted(value)}" for key, value in said.items() if value)
        shown = f"pkg:{self.kind}/{namespace}{_quoted(self.name)}{version}"
        return f"{shown}?{qualifiers}" if qualifiers else shown


def _quoted(text: str) -> str:
    return quote(text, safe=":")


@dataclass(frozen=True, slots=True)
class Terms:
    """The licence of a package, an SPDX expression or empty, and its copyright notices.

    `text` is the whole text of what the expression names when no list has it.
    """

    expression: str = ""
    copyright: str = ""
    text: str = ""


class Database(Protocol):
    """A way to find the packages of files."""

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, Package]:
        """Return the packages of those paths that it knows."""
        ...


#: takes note, in words, of what was wrong with a database
Report = Callable[[str], None]


class Folder:
    """The files of a root directory: `/`, or that of another system."""

    def __init__(self, top: bytes = b"/") -> None:
        self.top = top.rstrip(b"/")

    def at(self, path: bytes) -> bytes:
        """Return where a file is."""
        return self.top + path

    def read(self, path: bytes, max_bytes: int = MAX_BYTES) -> bytes | None:
        """Return the content of a regular file; None when it is missing or larger."""
        return read_regular(self.at(path), max_bytes)

    def names(self, path: bytes) -> list[bytes]:
        """Return the sorted names in a directory, none when it cannot be read."""
        try:
            return sorted(os.listdir(self.at(path)))  # noqa: PTH208  bytes
        except OSError:
            return []

    def merged(self) -> list[bytes]:
        """Return the top directories that are links into /usr."""
        return [each for each in MERGED if os.path.islink(self.at(each))]  # noqa: PTH114

    def is_there(self, path: bytes) -> bool:
        """Whether a file is there."""
        return os.path.lexists(self.at(path))


#: top directories that are links into /usr: a database may name files by either name
MERGED = (b"/bin", b"/sbin", b"/lib", b"/lib32", b"/lib64", b"/libx32", b"/libo32")


def names_of(path: bytes, merged: Iterable[bytes]) -> list[bytes]:
    """Return the names that a database may have for a path, by what is merged into /usr."""
    for directory in merged:
        if path.startswith(directory + b"/"):
            return [path, b"/usr" + path]
        if path.startswith(b"/usr" + directory + b"/"):
            return [path, path[4:]]
    return [path]


class Release:
    """The distribution of a root directory (os-release(5)): `name` is its ID, `version` its own."""

    def __init__(self, folder: Folder) -> None:
        raw = folder.read(b"/etc/os-release") or folder.read(b"/usr/lib/os-release") or b""
        said = dict(line.split("=", 1) for line in text_of(raw).splitlines() if "=" in line[1:])
        values = {key: value.strip().strip("\"'") for key, value in said.items()}
        self.name = values.get("ID", "")
        self.version = values.get("VERSION_ID", "")
        self.title = values.get("PRETTY_NAME", "") or self.name or "Linux"

    @property
    def qualifier(self) -> str:
        """Return what purls call it, `debian-12`."""
        return "-".join(part for part in (self.name, self.version) if part)
