# SPDX-License-Identifier: Apache-2.0
"""The usual kinds of entries: paths, programs, opens, executions, records."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from libetrace.image import Image

from etrace.cli.answer import Style
from etrace.query.records import Records

Record = Mapping[str, Any]


def _relative(path: bytes, style: Style) -> bytes:
    """Return a path below the root without it."""
    if style.root and path.startswith(style.root + b"/"):
        return path[len(style.root) + 1 :]
    return path


def _csv(fields: list[Any]) -> bytes:
    shown = ("None" if field is None else str(field) for field in fields)
    return os.fsencode(",".join(shown))


class Paths:
    """Entries are paths (bytes) that need not be in the database."""

    feeds: tuple[str, ...] = ("path", "binary")

    def plain(self, item: bytes, style: Style) -> bytes:
        """Return the path."""
        return _relative(item, style)

    details = plain

    def entry(self, item: bytes, style: Style) -> str:
        """Return the path."""
        return os.fsdecode(self.plain(item, style))

    def record(self, item: bytes, style: Style) -> Record:
        """Return the path, named."""
        return {"filename": self.entry(item, style)}

    def feed(self, item: bytes, _option: str) -> bytes:
        """Return the path."""
        return item


class Binaries(Paths):
    """Entries are paths (bytes) of programs."""

    feeds = ("binary", "path")

    def record(self, item: bytes, style: Style) -> Record:
        """Return the path, named."""
        return {"bin": self.entry(item, style)}


class Opens:
    """Entries are rows of `opens`; on plain lines their paths alone."""

    feeds = ("path", "pid", "binary")

    def __init__(self, image: Image) -> None:
        self._records = Records(image)
        self._opens = image["opens"]
        self._image = image

    def _path(self, item: int, *, original: bool) -> bytes:
        if original:
            return self._image.string(self._opens["original"][item])
        return self._image.path_string(self._opens["path"][item])

    def plain(self, item: int, style: Style) -> bytes:
        """Return the path."""
        return _relative(self._path(item, original=style.original), style)

    def details(self, item: int, style: Style) -> bytes:
        """Return `path,original,pid,type,open,close,access,exists,size`."""
        r = self.record(item, style)
        keys = ("filename", "original_path", "ppid", "type", "open_timestamp", "close_timestamp",
                "access", "exists", "size")  # fmt: skip
        return _csv([r[key] for key in keys])

    def entry(self, item: int, style: Style) -> str:
        """Return the path."""
        return os.fsdecode(self.plain(item, style))

    def record(self, item: int, style: Style) -> Record:
        """Return all that is known of the open."""
        record = self._records.open(item)
        shown = "original_path" if style.original else "filename"
        filename = os.fsdecode(_relative(os.fsencode(record[shown]), style))
        return record | {"filename": filename}

    def feed(self, item: int, option: str) -> bytes:
        """Return the path, or the execution that opened it."""
        if option == "pid":
            return b"%d:%d" % self._records.key(self._opens["execution"][item])
        return self._path(item, original=False)


class Executions:
    """Entries are rows of `executions`."""

    feeds = ("pid", "binary")

    def __init__(self, image: Image) -> None:
        self._records = Records(image)
        self._image = image

    def plain(self, item: int, style: Style) -> bytes:
        """Return the command, as a shell would take it."""
        argv = self._records.argv(item)
        return os.fsencode(" ".join(argv) if style.raw else shlex.join(argv))

    def details(self, item: int, style: Style) -> bytes:
        """Return `pid,idx,start,elapsed,ppid:pidx,bin,cwd,command,linked,compiled,objects`."""
        r = self.record(item, style)
        compiled = ":".join(f"{path}:{kind}" for path, kind in r.get("compiled", {}).items())
        return _csv(
            [
                r["pid"], r["idx"], r["stime"], r["etime"], f"{r['ppid']}:{r['pidx']}",
                r["bin"], r["cwd"], os.fsdecode(self.plain(item, style)),
                ":".join(r.get("linked", ())) or None, compiled or None,
                ":".join(r.get("objects", ())) or None,
            ]
        )  # fmt: skip

    def entry(self, item: int, style: Style) -> Record:
        """Return all that is known of the execution."""
        return self.record(item, style)

    def record(self, item: int, _style: Style) -> Record:
        """Return all that is known of the execution."""
        return self._records.command(item)

    def feed(self, item: int, option: str) -> bytes:
        """Return `upid:index`, or the program."""
        if option == "pid":
            return b"%d:%d" % self._records.key(item)
        return os.fsencode(self._records.path(self._image["executions"]["binary"][item]))


class Facts:
    """Entries are records (dicts) already; `line` makes the plain line of one.

    `fed` says under which key of a record an option of the next module finds its value.
    """

    def __init__(self, line: Callable[[Record], str], fed: Mapping[str, str] | None = None) -> None:
        self._line = line
        self._fed = fed or {}
        self.feeds = tuple(self._fed)

    def plain(self, item: Record, _style: Style) -> bytes:
        """Return the line."""
        return os.fsencode(self._line(item))

    details = plain

    def entry(self, item: Record, _style: Style) -> Record:
        """Return the record."""
        return item

    record = entry

    def feed(self, item: Record, option: str) -> bytes:
        """Return the value that the option takes."""
        return os.fsencode(str(item[self._fed[option]]))
