# SPDX-License-Identifier: Apache-2.0
"""The table `response_files` of an image -> a reader that expands command lines."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.compilers.response import ResponseFiles
from etrace.spec.path_style import style_of


def response_files(image: Image, *, reads_disk: bool = True) -> ResponseFiles:
    """Return a reader of captured contents and, if `reads_disk`, of files that were not."""
    style = style_of(image.attributes)
    if "response_files" not in image.tables:
        return ResponseFiles(reads_disk=reads_disk, style=style)
    table = image["response_files"]
    rows = {
        (upid, image.string(path)): content
        for upid, path, content in zip(table["upid"], table["path"], table["content"], strict=True)
    }

    def captured(upid: int, path: bytes) -> bytes | None:
        row = rows.get((upid, path))
        return None if row is None else image.string(row)

    return ResponseFiles(captured, reads_disk=reads_disk, style=style)
