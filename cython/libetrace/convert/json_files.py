# SPDX-License-Identifier: Apache-2.0
"""An image -> the texts of `.nfsdb.json`, `.nfsdb.env.json` and `.nfsdb.mounts.json`."""

from __future__ import annotations

from libetrace.convert.exporter import Exporter
from libetrace.image.columns import Columns
from libetrace.image.file import Image


def make_exporter(image: Image, *, split: int = 0) -> Exporter:
    """Return what makes the texts of an image. `libetrace.error` when it is damaged."""
    has_last_uses = image.attributes.get("tells_last", True)
    return Exporter(Columns(image), split=split, has_last_uses=has_last_uses)


def write_json_files(
    image: Image, fds: tuple[int, int, int], *, jobs: int = 1, split: int = 0
) -> int:
    """Write the three texts to empty regular files; return how many entries there are.

    Entries whose files have paths of more than `split` bytes together are broken into several.
    `libetrace.error` when the image is damaged, OSError, MemoryError.
    """
    exporter = make_exporter(image, split=split)
    n_entries = exporter.write(fds[0], jobs=jobs)
    for fd, text in zip(fds[1:], (exporter.environment(), exporter.mounts()), strict=True):
        with open(fd, "wb", closefd=False) as stream:
            stream.write(text)
    return n_entries
