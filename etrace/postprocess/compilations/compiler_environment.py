# SPDX-License-Identifier: Apache-2.0
"""The table `environment` -> the few variables that change what a compiler does, by process."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.postprocess.compilations.search_path import VARIABLES
from etrace.postprocess.compilations.traced_files import TracedFiles

TEMPORARY_VARIABLE = b"TMPDIR"


class Environment:
    """The variables of all processes of one image."""

    def __init__(self, image: Image, files: TracedFiles) -> None:
        wanted: dict[int, tuple[bytes, bytes]] = {}
        for name in (*VARIABLES, TEMPORARY_VARIABLE):
            for row in files.strings_with(name + b"="):
                wanted[row] = (name, image.string(row)[len(name) + 1 :])
        self._of: dict[int, dict[bytes, bytes]] = {}
        if not wanted:
            return
        table = image["environment"]
        for upid, string in zip(table["upid"], table["string"], strict=True):
            if string in wanted:
                name, value = wanted[string]
                self._of.setdefault(upid, {})[name] = value

    def of(self, upid: int) -> dict[bytes, bytes]:
        """Return the variables of a process by name."""
        return self._of.get(upid, {})

    def temporary_directories(self) -> set[bytes]:
        """Return every value of TMPDIR."""
        values = (each.get(TEMPORARY_VARIABLE, b"") for each in self._of.values())
        return {value.rstrip(b"/") for value in values} - {b""}
