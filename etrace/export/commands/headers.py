# SPDX-License-Identifier: Apache-2.0
"""Headers of a project -> the compilation whose options fit each best.

Of the compilations that read a header it is the one of a source of the same name in the same
directory, else of the same name anywhere, else the first. Headers of the system are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import splitext

from libetrace.image.file import Image

from etrace.query.classes.file_kinds import FileKind, FileKinds, is_of_system
from etrace.query.compiled import sources
from etrace.query.given.chosen import EVERYTHING
from etrace.query.revcomps_for import readers


def sources_of_headers(image: Image, rows: Sequence[int]) -> Iterator[tuple[bytes, int]]:
    """Yield headers and rows of `compilations`, in order of paths; only those of `rows` count."""
    kinds, wanted = FileKinds(image), set(rows)
    for path, found in sorted(readers(image, EVERYTHING).items()):
        header, own = image.path_string(path), sorted(found & wanted)
        if own and kinds.of(path) is FileKind.HEADER and not is_of_system(header):
            yield header, max(own, key=lambda row: (_likeness(image, header, row), -row))


def _likeness(image: Image, header: bytes, row: int) -> int:
    stem = splitext(header)[0]
    stems = [splitext(source)[0] for source in sources(image, row)]
    if stem in stems:
        return 2
    name = stem.rpartition(b"/")[2]
    return int(any(each.rpartition(b"/")[2] == name for each in stems))
