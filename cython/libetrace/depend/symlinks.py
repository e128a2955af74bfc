# SPDX-License-Identifier: Apache-2.0
"""An image -> the symbolic links that the build made."""

from __future__ import annotations

import posixpath
from array import array
from collections.abc import Iterator

from libetrace.image.file import Image

SYMLINKED = 4  # kind of a row of `changes`
#: (path, execution, target, time in ns) of each link, as columns
Links = tuple["array[int]", "array[int]", "array[int]", "array[int]"]


def find_links(image: Image) -> Links:
    """Return the symbolic links that were made: `path` stands for `target`, rows of `paths`.

    A target is looked for by its text, from the directory of the link. It is -1 when nothing
    opened, wrote or executed it.
    """
    columns: Links = (array("I"), array("I"), array("q"), array("q"))
    if "changes" in image.tables:
        for row in _links(image):
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return columns


def _links(image: Image) -> Iterator[tuple[int, int, int, int]]:
    changes, opens = image["changes"], image["opens"]
    kinds = bytes(changes["kind"])
    at = kinds.find(SYMLINKED)
    while at >= 0:
        opened, text = changes["open"][at], changes["name"][at]
        path = opens["path"][opened]
        target = find_target(image, path, text)
        if target != path:
            yield path, opens["execution"][opened], target, changes["time_ns"][at]
        at = kinds.find(SYMLINKED, at + 1)


def find_target(image: Image, path: int, text: int) -> int:
    """Return the row of `paths` that a link leads to, -1 when nothing used it.

    `text` is the string of the link, `path` the row of its own name.
    """
    if text < 0:
        return -1
    here = posixpath.dirname(image.path_string(path))
    return image.find_path(posixpath.normpath(posixpath.join(here, image.string(text))))
