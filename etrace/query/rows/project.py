# SPDX-License-Identifier: Apache-2.0
"""Which directories of installed software, such as /opt, hold what is built.

A build may begin elsewhere: `make -C /opt/x`. What is in the source root is the project's in any
case, and so is what is in no directory of the system.
"""

from __future__ import annotations

import bisect
from functools import cached_property

from libetrace.depend.path_opens import PathOpens
from libetrace.image.file import Image
from libetrace.image.string_lookup import used_strings

#: files that say how a directory is built
BUILD_FILES = tuple(
    b"""Makefile makefile GNUmakefile BSDmakefile Kbuild CMakeLists.txt meson.build build.ninja
    SConstruct wscript BUILD BUILD.bazel WORKSPACE MODULE.bazel configure Cargo.toml go.mod pom.xml
    build.xml build.gradle build.gradle.kts build.sbt Rakefile dune-project Package.swift build.zig
    cabal.project mix.exs rebar.config Jamroot Justfile justfile pyproject.toml setup.py Makefile.PL
    Build.PL .latexmkrc latexmkrc SConscript build.sh""".split()
)
OPT = b"/opt/"
#: they hold software of many projects
_SHARED = frozenset((b"", b"/opt", b"/usr", b"/usr/local", b"/usr/share", b"/usr/lib", b"/lib"))


class Project:
    """The directories of what one image's build built."""

    def __init__(self, image: Image, opens: PathOpens) -> None:
        self._image, self._opens = image, opens
        self._known: dict[bytes, bool] = {b"": False}
        self._tools: dict[bytes, bool] = {}

    def holds(self, name: bytes) -> bool:
        """Return whether a path is below a directory where the build worked.

        A command ran there, and it has a build file that was read. In /opt it is enough that the
        build wrote there; no command need have run there if none ran a program from there, as a
        build would do with an installed compiler.
        """
        found, folder = False, name.rpartition(b"/")[0]
        folders = [folder]
        while folder not in self._known:
            folder = folder.rpartition(b"/")[0]
            folders.append(folder)
        for each in reversed(folders):
            found = self._known.setdefault(each, False) or found or self._is_project(each)
            self._known[each] = found
        return found

    def _is_project(self, folder: bytes) -> bool:
        if folder in _SHARED:
            return False
        is_in_opt = folder.startswith(OPT)
        is_place = self._is_place(folder) or (is_in_opt and not self._has_tools(folder))
        return is_place and (self._has_build_file(folder) or (is_in_opt and self._is_made(folder)))

    def _is_place(self, folder: bytes) -> bool:
        """Return whether a command ran in a directory."""
        string = self._image.find_string(folder)
        return string >= 0 and bool(self._places[string])

    @cached_property
    def _places(self) -> bytearray:
        """A byte for each row of `strings`, 1 for the working directories of all commands."""
        return used_strings(self._image["executions"]["cwd"], self._image.n_strings)

    def _has_build_file(self, folder: bytes) -> bool:
        return any(self._image.find_path(folder + b"/" + each) >= 0 for each in BUILD_FILES)

    def _is_made(self, folder: bytes) -> bool:
        return any(map(self._opens.is_written, self._below(folder)))

    def _has_tools(self, folder: bytes) -> bool:
        """Return whether programs ran from the package of a directory that were there before."""
        package = b"/".join(folder.split(b"/", 3)[:3])
        if package not in self._tools:
            self._tools[package] = any(
                self._opens.is_program(path) and not self._opens.is_written(path)
                for path in self._below(package)
            )
        return self._tools[package]

    def _below(self, folder: bytes) -> range:
        """Return the rows of the paths below a directory."""
        paths, path_string = range(self._image["paths"].n_rows), self._image.path_string
        begin, end = folder + b"/", folder + b"0"  # follows /
        low = bisect.bisect_left(paths, begin, key=path_string)
        return range(low, bisect.bisect_left(paths, end, lo=low, key=path_string))
