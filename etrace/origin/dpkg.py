# SPDX-License-Identifier: Apache-2.0
"""Files -> packages of dpkg, read from its files: dpkg(1), dpkg-divert(1), deb-control(5).

`/var/lib/dpkg/status` has the packages, `info/*.list` their files, `diversions` what has another
name. Where `/bin` and `/lib` are links into `/usr`, lists and traces may name a file by either
name. /usr/share/doc/NAME/copyright has the licence, in the format of Debian's copyright-format/1.0.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from etrace.origin.package import Folder, Package, Release, Report, Terms, names_of
from etrace.texts import text_of

PLACE = b"/var/lib/dpkg"
MAX_STATUS = 256 << 20
MAX_COPYRIGHT = 4 << 20
#: lines with a copyright notice that are taken of a file
N_NOTICES = 50
_NOTICE = re.compile(r"(?:copyright|\(c\)|\u00a9).*\d{4}", re.IGNORECASE)
MAX_NOTICE = 500
#: statuses of packages that have no files
ABSENT = frozenset((b"not-installed", b"config-files"))
_FIELD = re.compile(rb"^(Package|Status|Version|Architecture|Maintainer):([^\n]*)", re.MULTILINE)
_BETWEEN = re.compile(rb"\n[ \t]*\n")
#: names of copyright-format/1.0 that SPDX writes differently
_RENAMED = {
    "expat": "MIT", "gpl-1": "GPL-1.0-only", "gpl-1+": "GPL-1.0-or-later",
    "gpl-2": "GPL-2.0-only", "gpl-2.0": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later",
    "gpl-2.0+": "GPL-2.0-or-later", "gpl-3": "GPL-3.0-only", "gpl-3.0": "GPL-3.0-only",
    "gpl-3+": "GPL-3.0-or-later", "gpl-3.0+": "GPL-3.0-or-later", "lgpl-2": "LGPL-2.0-only",
    "lgpl-2+": "LGPL-2.0-or-later", "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later",
    "lgpl-3": "LGPL-3.0-only", "lgpl-3+": "LGPL-3.0-or-later", "artistic": "Artistic-1.0-Perl",
    "apache-2": "Apache-2.0", "zlib/libpng": "Zlib", "bsd-3": "BSD-3-Clause",
    "bsd-2": "BSD-2-Clause", "cc0": "CC0-1.0", "mpl-1.1": "MPL-1.1", "mpl-2.0": "MPL-2.0",
}  # fmt: skip


def _stanzas(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each stanza begins and ends."""
    begin = 0
    for each in _BETWEEN.finditer(raw):
        yield begin, each.start()
        begin = each.end()
    yield begin, len(raw)


class Dpkg:
    """The packages of one root directory; problems are reported once, in words."""

    def __init__(self, folder: Folder, release: Release, report: Report) -> None:
        self._folder, self._release, self._report = folder, release, report

    @property
    def is_there(self) -> bool:
        """Whether dpkg has a database."""
        return self._folder.is_there(PLACE + b"/info")

    @cached_property
    def packages(self) -> Mapping[bytes, Package]:
        """Name as in `info` (`libc6:amd64`, `make`) -> package."""
        raw = self._folder.read(PLACE + b"/status", MAX_STATUS)
        if raw is None:
            self._report(f"{self._shown(b'/status')}: cannot be read: packages have no version")
            return {}
        found: dict[bytes, Package] = {}
        n_damaged = 0
        for begin, end in _stanzas(raw):
            fields = {each[1]: each[2].strip() for each in _FIELD.finditer(raw, begin, end)}
            name, status = fields.get(b"Package", b""), fields.get(b"Status", b"")
            if not name or not status:
                n_damaged += bool(raw[begin:end].strip())
            elif status.split()[-1:] and status.split()[-1] not in ABSENT:
                package = self._package(name, fields)
                found[name + b":" + fields.get(b"Architecture", b"")] = package
                found.setdefault(name, package)
        if n_damaged:
            self._report(f"{self._shown(b'/status')}: {n_damaged} entries are damaged and left out")
        return found

    def _package(self, name: bytes, fields: Mapping[bytes, bytes]) -> Package:
        said = {key: text_of(value) for key, value in fields.items()}
        return Package(
            "deb",
            text_of(name),
            said.get(b"Version", ""),
            said.get(b"Architecture", ""),
            namespace=self._release.name or "debian",
            supplier=said.get(b"Maintainer", ""),
            distribution=self._release.qualifier,
        )

    def _shown(self, name: bytes) -> str:
        return os.fsdecode(self._folder.at(PLACE + name))

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, Package]:
        """Return the packages of those paths that a list of dpkg names."""
        wanted: dict[bytes, list[bytes]] = {}  # name in a list -> paths
        merged = self._folder.merged()
        for path in paths:
            for name in names_of(path, merged):
                wanted.setdefault(name, []).append(path)
        diverted = self._diversions()
        sought = wanted.keys() | {at for at, (to, _) in diverted.items() if to in wanted}
        found: dict[bytes, Package] = {}
        for file in self._folder.names(PLACE + b"/info"):
            if file.endswith(b".list"):
                self._take(file[:-5], sought, wanted, diverted, found)
        return found

    def _take(
        self,
        package: bytes,
        sought: set[bytes],
        wanted: Mapping[bytes, list[bytes]],
        diverted: Mapping[bytes, tuple[bytes, bytes]],
        found: dict[bytes, Package],
    ) -> None:
        """Add what one list owns of the wanted files."""
        listed = self._folder.read(PLACE + b"/info/" + package + b".list", MAX_STATUS)
        if listed is None:
            self._report(f"{self._shown(b'/info/' + package)}.list: cannot be read: it is left out")
            return
        lines = (line.removesuffix(b"\n") for line in io.BytesIO(listed))
        own = {line for line in lines if line in sought}
        if not own:
            return
        known = self.packages.get(package) or self._package(package.partition(b":")[0], {})
        for name in sorted(own):
            to, by = diverted.get(name, (name, b""))
            place = name if by == package.partition(b":")[0] else to
            for path in wanted.get(place, ()):
                found.setdefault(path, known)

    def _diversions(self) -> dict[bytes, tuple[bytes, bytes]]:
        """Return name -> (its new name, the package that may keep the name), as in the file."""
        raw = self._folder.read(PLACE + b"/diversions")
        if raw is None:
            return {}
        lines = raw.rstrip(b"\n").split(b"\n") if raw.strip() else []
        if len(lines) % 3:
            self._report(f"{self._shown(b'/diversions')}: its end is missing")
        whole = len(lines) - len(lines) % 3
        return {lines[i]: (lines[i + 1], lines[i + 2]) for i in range(0, whole, 3)}

    def terms(self, package: Package) -> Terms:
        """Return what the copyright file of a package says; empty without one.

        A machine-readable file has the licence in its paragraph `Files: *`. Of any other file the
        whole text is the licence: a reference names it.
        """
        path = b"/usr/share/doc/" + os.fsencode(package.name) + b"/copyright"
        raw = self._folder.read(path, MAX_COPYRIGHT) if package.kind == "deb" else None
        if raw is None:
            return Terms()
        text = text_of(raw)
        lines = (line[:MAX_NOTICE] for line in text.splitlines())
        notices = [line.strip(" *#\t") for line in lines if _NOTICE.search(line)]
        notice = "\n".join(dict.fromkeys(notices[:N_NOTICES]))
        for stanza in re.split(r"\n[ \t]*\n", text):
            if re.search(r"^Files:[ \t]*(?:\n[ \t]+)?\*[ \t]*$", stanza, re.MULTILINE):
                said = re.search(r"^License:([^\n]*)", stanza, re.MULTILINE)
                own = re.search(r"^Copyright:((?:.*)(?:\n[ \t]+.*)*)", stanza, re.MULTILINE)
                found = _expression(said[1]) if said else ""
                if found:
                    holders = own[1].split("\n") if own else notices
                    return Terms(found, "\n".join(filter(None, map(str.strip, holders))))
        plain = re.sub(r"[^A-Za-z0-9.-]", "-", package.name)
        return Terms(f"LicenseRef-{plain}-copyright", notice, text)


def _expression(said: str) -> str:
    """Return a name of copyright-format/1.0 as SPDX writes it; empty when it is not one name."""
    words = said.split()
    between = set(words[1::2])
    if not between <= {"and", "or"} or len(words) % 2 == 0:
        return ""
    if not all(re.fullmatch(r"[\w.+-]+", word) for word in words):
        return ""
    return " ".join(
        word.upper() if word in ("and", "or") else _RENAMED.get(word.lower(), word)
        for word in words
    )
