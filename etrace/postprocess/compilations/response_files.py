# SPDX-License-Identifier: Apache-2.0
"""The table `response_files` of an image -> a reader that expands command lines."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.compilers.response import ResponseFiles


def response_files(image: Image) -> ResponseFiles:
    """Return a reader that prefers captured contents to files on the disk."""
    if "response_files" not in image.tables:
        return ResponseFiles()
    table = image["response_files"]
    rows = {
        (upid, image.string(path)): content
        for upid, path, content in zip(table["upid"], table["path"], table["content"], strict=True)
    }

    def captured(upid: int, path: bytes) -> bytes | None:
        row = rows.get((upid, path))
        return None if row is None else image.string(row)

    return ResponseFiles(captured)
