# SPDX-License-Identifier: Apache-2.0
"""Files -> packages of pip, npm and cargo, by what is beside them.

pip: `*.dist-info/RECORD` ("Recording installed projects" of the Python Packaging Authority) names
the files of a project, METADATA the project. npm: the package.json of the directory below the last
`node_modules` of a path. cargo: Cargo.toml of a directory in `registry/src/INDEX/`, or of one that
`cargo vendor` made.
"""

from __future__ import annotations

import csv
import email.errors
import email.parser
import io
import json
import os
import re
import tomllib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from etrace.origin.package import Folder, Package, Report
from etrace.texts import text_of

_SITE = re.compile(rb"(.*?/lib(?:32|64)?/(?:python[\d.]*|pypy[\d.]*)/(?:site|dist)-packages)/")
_BINARY = re.compile(rb"(.*)/bin/[^/]+")
_CACHED = re.compile(rb"(.*/)?__pycache__/([^/]+?)\.[\w-]+(?:\.opt-\d)?\.pyc")
_MODULE = re.compile(rb"(.*/node_modules/(?:@[^/]+/)?[^/]+)/")
_CRATE = re.compile(rb"(.*/registry/src/[^/]+/[^/]+)/")
_VENDORED = re.compile(rb"(.*/vendor/[^/]+)/")
#: of a project's own list, of its description, which has a page of text, and of package.json
MAX_RECORD, MAX_METADATA, MAX_JSON = 32 << 20, 4 << 20, 2 << 20


#: of Cargo.toml; tomllib takes time and memory by the square of a line's dots
MAX_TOML, MAX_DOTS = 1 << 20, 200


def _source_of(path: bytes) -> bytes:
    """Return the source of a compiled module, which a RECORD may name alone."""
    return _CACHED.sub(rb"\1\2.py", path)


def _string(value: object) -> str:
    r"""Return a text of JSON or TOML without halves of characters, which JSON may have."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else ""


class Pip:
    """Projects that pip installed."""

    def __init__(self, folder: Folder, report: Report) -> None:
        self._folder, self._report = folder, report

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, Package]:
        """Return the projects of those paths that a RECORD names."""
        sites: dict[bytes, tuple[bytes, ...]] = {}
        wanted: dict[bytes, set[bytes]] = defaultdict(set)
        for path in paths:
            sites[path] = tuple(self._sites(path))
            for site in sites[path]:
                wanted[site].update((path, _source_of(path)))
        known = {site: self._read_site(site, own) for site, own in wanted.items()}
        found = {}
        for path, own in sites.items():
            for site in own:
                package = known[site].get(path) or known[site].get(_source_of(path))
                if package is not None:
                    found[path] = package
                    break
        return found

    def _sites(self, path: bytes) -> Iterator[bytes]:
        if match := _SITE.match(path):
            yield match[1]
        elif match := _BINARY.match(path):
            library = match[1] + b"/lib"
            for name in self._versions(library):
                yield library + b"/" + name + b"/site-packages"

    def _versions(self, library: bytes) -> list[bytes]:
        names = self._folder.names(library)
        return [name for name in names if name.startswith((b"python3", b"pypy3"))]

    def _read_site(self, site: bytes, wanted: set[bytes]) -> Mapping[bytes, Package]:
        """Return the projects of the wanted files: a RECORD may name millions of others."""
        found: dict[bytes, Package] = {}
        last = {path.rpartition(b"/")[2].decode("utf-8", "surrogateescape") for path in wanted}
        for name in self._folder.names(site):
            record = name.endswith(b".dist-info") and self._folder.read(
                site + b"/" + name + b"/RECORD", MAX_RECORD
            )
            if not record:
                continue
            package = self._project(site + b"/" + name)
            lines = io.TextIOWrapper(io.BytesIO(record), "utf-8", "surrogateescape", newline="")
            own = set[bytes]()
            try:
                for row in csv.reader(lines):
                    if not row or row[0].rpartition("/")[2] not in last:
                        continue
                    path = row[0].encode("utf-8", "surrogateescape")
                    at = os.path.normpath(os.path.join(site, path))  # noqa: PTH118  bytes
                    if at in wanted:
                        own.add(at)
            except csv.Error as error:
                self._report(f"{os.fsdecode(site + b'/' + name)}/RECORD: {error}")
                continue
            for at in own:
                found.setdefault(at, package)
        return found

    def _project(self, info: bytes) -> Package:
        raw = text_of(self._folder.read(info + b"/METADATA", MAX_METADATA) or b"")
        try:
            said = email.parser.HeaderParser().parsestr(raw)
        except email.errors.MessageError:
            said = email.parser.HeaderParser().parsestr("")
        stem = text_of(info.rpartition(b"/")[2].removesuffix(b".dist-info"))
        name, _, version = stem.partition("-")
        name = re.sub(r"[-_.]+", "-", str(said["Name"] or name)).lower()
        supplier = str(said["Author-email"] or said["Author"] or said["Maintainer-email"] or "")
        licence = str(said["License-Expression"] or "")
        return Package(
            "pypi", name, str(said["Version"] or version), supplier=supplier, licence=licence
        )


class _Directories(ABC):
    """Packages that are directories: each has one file that describes it."""

    def __init__(self, folder: Folder, report: Report) -> None:
        self._folder, self._report = folder, report
        self._known = lru_cache(maxsize=None)(self._describe)

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, Package]:
        """Return the packages of those paths that are in the directory of one."""
        found = {}
        for path in paths:
            directory = self._directory(path)
            package = None if directory is None else self._known(directory)
            if package is not None:
                found[path] = package
        return found

    @abstractmethod
    def _directory(self, path: bytes) -> bytes | None:
        """Return the directory of the package that a path is in."""

    @abstractmethod
    def _describe(self, directory: bytes) -> Package | None:
        """Return the package of a directory."""


class Npm(_Directories):
    """Packages below `node_modules`."""

    def _directory(self, path: bytes) -> bytes | None:
        match = _MODULE.match(path)
        return match[1] if match else None

    def _describe(self, directory: bytes) -> Package | None:
        file = directory + b"/package.json"
        raw = self._folder.read(file, MAX_JSON)
        if raw is None:
            return None
        try:
            said = json.loads(raw)
        except (ValueError, RecursionError):
            self._report(f"{os.fsdecode(self._folder.at(file))}: not JSON")
            return None
        if not isinstance(said, dict) or not _string(said.get("name")):
            return None
        namespace, _, name = _string(said["name"]).rpartition("/")
        author = said.get("author")
        supplier = author.get("name") if isinstance(author, dict) else author
        return Package(
            "npm", name, _string(said.get("version")), namespace=namespace,
            supplier=_string(supplier), licence=_string(said.get("license")),
        )  # fmt: skip


class Cargo(_Directories):
    """Crates of a registry, and vendored ones."""

    def _directory(self, path: bytes) -> bytes | None:
        if match := _CRATE.match(path):
            return match[1]
        match = _VENDORED.match(path)
        is_vendored = match and self._folder.is_there(match[1] + b"/.cargo-checksum.json")
        return match[1] if match and is_vendored else None

    def _describe(self, directory: bytes) -> Package | None:
        file = directory + b"/Cargo.toml"
        raw = self._folder.read(file, MAX_TOML) or b""
        try:
            if any(line.count(b".") > MAX_DOTS for line in raw.split(b"\n")):
                raise ValueError  # noqa: TRY301
            said = tomllib.loads(text_of(raw))
        except (ValueError, RecursionError):
            self._report(f"{os.fsdecode(self._folder.at(file))}: not TOML")
            said = {}
        package: dict[str, Any] = said["package"] if isinstance(said.get("package"), dict) else {}
        name, version = _string(package.get("name")), _string(package.get("version"))
        by_name = re.fullmatch(r"(.+?)-(\d+\.\d+\.\d+.*)", text_of(directory.rpartition(b"/")[2]))
        if not name and by_name:
            name, version = by_name[1], by_name[2]
        authors = package.get("authors")
        supplier = _string(authors[0]) if isinstance(authors, list) and authors else ""
        licence = _string(package.get("license")).replace("/", " OR ")
        return Package("cargo", name, version, supplier=supplier, licence=licence) if name else None
