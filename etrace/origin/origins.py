# SPDX-License-Identifier: Apache-2.0
"""Paths -> the packages that own them, by all databases of a root directory.

A distribution's database is asked first: it also lists what pip and npm would know by
their own files.
"""

from __future__ import annotations

from collections.abc import Iterable

from etrace.origin.dpkg import Dpkg
from etrace.origin.languages import Cargo, Npm, Pip
from etrace.origin.licence import is_expression
from etrace.origin.package import Folder, Package, Release, Terms
from etrace.origin.rpm import Rpm


class Origins:
    """The packages of some paths; `problems` says in words what could not be read."""

    def __init__(self, paths: Iterable[bytes], top: bytes = b"/") -> None:
        self.problems: list[str] = []
        folder = Folder(top)
        self.release = Release(folder)
        self._dpkg = Dpkg(folder, self.release, self.report)
        rpm = Rpm(folder, self.release, self.report)
        self.packages: dict[bytes, Package] = {}
        self._terms: dict[Package, Terms] = {}
        remaining = set(paths)
        for database in (
            *(each for each in (self._dpkg, rpm) if each.is_there),
            Pip(folder, self.report),
            Npm(folder, self.report),
            Cargo(folder, self.report),
        ):
            found = database.owners(sorted(remaining))
            self.packages |= found
            remaining -= found.keys()

    def report(self, problem: str) -> None:
        """Take note of a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def terms(self, package: Package) -> Terms:
        """Return the licence and the copyright notices of a package, as far as they are known."""
        if package not in self._terms:
            own = package.licence if is_expression(package.licence) else ""
            self._terms[package] = self._dpkg.terms(package) if not own else Terms(own)
        return self._terms[package]
