# SPDX-License-Identifier: Apache-2.0
"""`--hash` of queries that list files: what each entry shows, with the hashes of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer, Shape, Style
from etrace.errors import EtraceError, UsageError
from etrace.query.hashes import FileHash, Hashes

#: hexadecimal digits of SHA-256
WIDTH = 64
UNKNOWN = FileHash("", "", -1, "unknown")


class Hashed:
    """Entries of another shape, each with the hashes of its file."""

    def __init__(self, shape: Shape, image: Image, hashes: Hashes) -> None:
        self._shape, self._image, self._hashes = shape, image, hashes
        self.styles, self.feeds = shape.styles, shape.feeds

    def _of(self, item: Any) -> FileHash:
        row = self._image.find_path(self.feed(item, "path"))
        return (self._hashes.of(row) if row >= 0 else None) or UNKNOWN

    def plain(self, item: Any, style: Style) -> bytes:
        r"""Return the line as sha256sum(1) writes it: `\HASH  a\nb` if a name has a line break."""
        found = self._of(item)
        digits = found.sha256 or f"{found.state:<{WIDTH}}"
        path = self._shape.plain(item, style)
        mark = b""
        if found.sha256 and any(each in path for each in (b"\n", b"\r", b"\\")):
            mark = b"\\"
            for raw, shown in ((b"\\", rb"\\"), (b"\n", rb"\n"), (b"\r", rb"\r")):
                path = path.replace(raw, shown)
        return mark + digits.encode() + b"  " + path

    def details(self, item: Any, style: Style) -> bytes:
        """Return the line with all fields, then SHA-256, git blob and state."""
        found = self._of(item)
        fields = (found.sha256 or "None", found.git_blob or "None", found.state)
        return b",".join((self._shape.details(item, style), *(each.encode() for each in fields)))

    def record(self, item: Any, style: Style) -> Mapping[str, Any]:
        """Return the record with sha256, git_blob and hash_state; null without a hash."""
        found = self._of(item)
        return {
            **self._shape.record(item, style),
            "sha256": found.sha256 or None,
            "git_blob": found.git_blob or None,
            "hash_state": found.state,
        }

    entry = record

    def feed(self, item: Any, option: str) -> bytes:
        """Return the path."""
        return self._shape.feed(item, option)


def with_hashes(answer: Answer, image: Image) -> Answer:
    """Return an answer that shows hashes. EtraceError when none are known."""
    if answer.single or "path" not in answer.shape.feeds:
        raise UsageError("--hash does nothing here: entries are not files", "leave it out")
    hashes = Hashes(image)
    if not hashes.are_known:
        raise EtraceError(
            "no files were hashed",
            "etrace run --hash ..., or for what is still there: cas parse --hash",
        )
    return answer._replace(shape=Hashed(answer.shape, image, hashes))
