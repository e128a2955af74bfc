# SPDX-License-Identifier: Apache-2.0
"""The usual kinds of entries: paths, programs, opens, executions, records."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer, Style
from etrace.figures import seconds, size
from etrace.query.rows.records import Records
from etrace.query.rows.written import Written

if TYPE_CHECKING:
    from etrace.query.linked_modules import Module
    from etrace.query.rows.file_kinds import FileKind

Record = Mapping[str, Any]


NEWLINE = b"\n"


def _relative(path: bytes, style: Style) -> bytes:
    """Return a path below the root without it; in one line where it has to be."""
    if style.root and path.startswith(style.root + b"/"):
        path = path[len(style.root) + 1 :]
    return _quoted(path) if style.one_line and NEWLINE in path else path


def _quoted(text: bytes) -> bytes:
    """Return a text of several lines as bash and zsh write it in one."""
    for byte, escaped in ((b"\\", b"\\\\"), (b"'", b"\\'"), (NEWLINE, b"\\n")):
        text = text.replace(byte, escaped)
    return b"$'" + text + b"'"


def _command(argv: Sequence[str], style: Style) -> bytes:
    """Return a command as a shell would take it."""
    if style.raw:
        return os.fsencode(" ".join(argv))
    words = (os.fsencode(word) for word in argv)
    shown = (
        _quoted(word) if style.one_line and NEWLINE in word
        else os.fsencode(shlex.quote(os.fsdecode(word)))
        for word in words
    )  # fmt: skip
    return b" ".join(shown)


def _csv(fields: list[Any]) -> bytes:
    shown = ("None" if field is None else str(field) for field in fields)
    return os.fsencode(",".join(shown))


class Paths:
    """Entries are paths (bytes) that need not be in the database."""

    feeds = ("path", "binary")

    def __init__(self, *, are_opened: bool = False) -> None:
        """`are_opened`: they are as the programs gave them, when the user wants that."""
        self.styles = ("relative", "original_path") if are_opened else ("relative",)

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

    feeds: tuple[str, ...] = ("path", "pid", "binary")
    styles = ("relative", "original_path")

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
        """Return `path,original,pid,type,open,close,access,exists,size,kind`."""
        r = self.record(item, style)
        keys = ("filename", "original_path", "ppid", "type", "open_timestamp", "close_timestamp",
                "access", "exists", "size", "kind")  # fmt: skip
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


class Files(Opens):
    """Entries are (row of `paths`, row of `opens` or one beyond): files, each with a use of it.

    Files that were only inherited or executed have a record without an open.
    """

    feeds = ("path", "binary")

    def __init__(self, image: Image, kind_of: Callable[[int], FileKind]) -> None:
        super().__init__(image)
        self._kind_of = kind_of

    def _row(self, item: tuple[int, int]) -> int | None:
        return item[1] if item[1] < self._opens.n_rows else None

    def plain(self, item: tuple[int, int], style: Style) -> bytes:  # type: ignore[override]
        """Return the path."""
        row = self._row(item)
        if row is not None:
            return super().plain(row, style)
        return _relative(self._image.path_string(item[0]), style)

    def record(self, item: tuple[int, int], style: Style) -> Record:  # type: ignore[override]
        """Return all facts about the use, null for unknown ones."""
        row, kind = self._row(item), {"kind": self._kind_of(item[0]).value}
        if row is not None:
            return {**super().record(row, style), **kind}
        filename = os.fsdecode(self.plain(item, style))
        return {**self._records.file(item[0]), "filename": filename, **kind}

    def feed(self, item: tuple[int, int], _option: str) -> bytes:  # type: ignore[override]
        """Return the path."""
        return self._image.path_string(item[0])


class Executions:
    """Entries are rows of `executions`."""

    feeds = ("pid", "binary")
    styles = ("raw_command",)

    def __init__(self, image: Image) -> None:
        self._records = Records(image)
        self._image = image

    def plain(self, item: int, style: Style) -> bytes:
        """Return the command, as a shell would take it; without one a comment."""
        argv = self._records.argv(item)
        if not argv:
            return b"# process %d:%d before its first program" % self._records.key(item)
        return _command(argv, style)

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


def _used(records: Records, item: int, _style: Style) -> list[str]:
    """Return CPU seconds, largest memory, and bytes read and written."""
    used = records.usages.value
    cpu_ns = used(item, "cpu_ns")
    shown = ["-" if cpu_ns is None else seconds(cpu_ns)]
    for key in ("max_rss_bytes", "rchar_bytes", "wchar_bytes"):
        n_bytes = used(item, key)
        shown.append("-" if n_bytes is None else size(n_bytes))
    return [f"{each:>10}" for each in shown]


def _targets(records: Records, item: int, style: Style) -> list[str]:
    """Return the names of the target."""
    names = _command(records.target_names(item), style)
    return [f"{os.fsdecode(names) or '-':<24}"]


Columns = Callable[[Records, int, Style], list[str]]
#: what may be before a command
USED, TARGETS = _used, _targets


class ExecutionColumns(Executions):
    """Entries are rows of `executions`; the plain line begins with columns."""

    def __init__(self, image: Image, columns: Sequence[Columns]) -> None:
        super().__init__(image)
        self._columns = columns

    def plain(self, item: int, style: Style) -> bytes:
        """Return the columns and the command."""
        shown = [text for column in self._columns for text in column(self._records, item, style)]
        command = super().plain(item, style)
        return os.fsencode("  ".join(shown)) + b"  " + command if shown else command


class ExecutionOutputs(ExecutionColumns):
    """Entries are rows of `executions`; what each wrote follows its line."""

    def __init__(self, image: Image, columns: Sequence[Columns]) -> None:
        super().__init__(image, columns)
        self._written = Written(image)
        self._of = self._written.by_command()

    def plain(self, item: int, style: Style) -> bytes:
        """Return the command, and what it wrote in lines of their own."""
        lines = (
            b"    " + line
            for execution in self._of.get(item, ())
            for line in self._written.numbered_lines(execution)
        )
        return NEWLINE.join((super().plain(item, style), *lines))

    def record(self, item: int, style: Style) -> Record:
        """Return all that is known of the execution, with what it wrote."""
        executions = self._of.get(item, ())
        pieces = [piece for each in executions for piece in self._written.record(each)]
        return {**super().record(item, style), "written": pieces}


class Facts:
    """Entries are records (dicts) already; `line` makes the plain line of one.

    `fed` says under which key of a record an option of the next module finds its value; `heading`
    names the columns of the lines.
    """

    styles: tuple[str, ...] = ()

    def __init__(
        self,
        line: Callable[[Record], str],
        fed: Mapping[str, str] | None = None,
        heading: str = "",
    ) -> None:
        self._line = line
        self.heading = heading
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


class Modules:
    """Entries are linked modules."""

    feeds = ("path", "binary")
    styles = ("relative",)

    def __init__(self, image: Image) -> None:
        self._records = Records(image)
        self._image = image

    def plain(self, item: Module, style: Style) -> bytes:
        """Return the path."""
        return _relative(self._image.path_string(item.path), style)

    def details(self, item: Module, style: Style) -> bytes:
        """Return `path,kind,executions that made it`."""
        record = self.record(item, style)
        made_by = ":".join(f"{each['pid']}/{each['idx']}" for each in record["linked_by"])
        return _csv([record["filename"], record["kind"], made_by])

    def entry(self, item: Module, style: Style) -> str:
        """Return the path."""
        return os.fsdecode(self.plain(item, style))

    def record(self, item: Module, style: Style) -> Record:
        """Return all that is known of the module."""
        keys = (self._records.key(row) for row in item.executions)
        return {
            "filename": self.entry(item, style),
            "type": "linked",
            "kind": item.kind_name,
            "linked_by": [{"pid": pid, "idx": index} for pid, index in keys],
            **self._copy_of(item, style),
        }

    def _copy_of(self, item: Module, style: Style) -> Record:
        if item.copy_of is None:
            return {}
        return {"copy_of": os.fsdecode(_relative(self._image.path_string(item.copy_of), style))}

    def feed(self, item: Module, _option: str) -> bytes:
        """Return the path."""
        return self._image.path_string(item.path)


class Compilations:
    """Entries are rows of `compilations`; a plain one takes several lines."""

    feeds = ("path", "pid")
    styles = ("relative", "raw_command")

    def __init__(self, image: Image) -> None:
        self._records = Records(image)
        self._image = image

    def plain(self, item: int, style: Style) -> bytes:
        """Return lines: what was compiled, and below it by what command and how."""
        r = self.record(item, style)
        argv = r["command"]["command"]
        rows = [
            *(("header", header) for header in r["headers"]),
            *(("include", directory) for directory in r["include_paths"]),
            *(("define", f"{d['name']}={d['value']}") for d in r["defs"]),
            *(("undefine", name) for name in r["undefs"]),
            *(("object", path) for path in r["objects"]),
        ]
        lines = [f"{path} ({r['source_type']})" for path in r["compiled_files"]]
        lines.append(f"  directory  {r['command']['cwd']}")
        lines.append(f"  command    {' '.join(argv) if style.raw else shlex.join(argv)}")
        lines += [f"  {name:<10} {value}" for name, value in rows]
        return os.fsencode("\n".join(lines))

    details = plain

    def entry(self, item: int, style: Style) -> Record:
        """Return all that is known of the compilation."""
        return self.record(item, style)

    def record(self, item: int, style: Style) -> Record:
        """Return all that is known of the compilation; its files relative if asked."""
        record = self._records.compilation(item)
        for key in ("compiled_files", "objects"):
            paths = (_relative(os.fsencode(path), style) for path in record[key])
            record[key] = [os.fsdecode(path) for path in paths]
        return record

    def feed(self, item: int, option: str) -> bytes:
        """Return the first file that was compiled, or the execution that did it."""
        record = self._records.compilation(item)
        if option == "pid":
            return b"%d:%d" % (record["command"]["pid"], record["command"]["idx"])
        return os.fsencode(record["compiled_files"][0])


# ---- answers of one entry ----


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_shown(each)}" for key, each in value.items())
    return "-" if value is None else str(value)


def whole(record: Record) -> Answer:
    """Answer with one record: plain as a line for each key."""
    width = max(map(len, record), default=0)

    def lines(record: Record) -> str:
        return "\n".join(f"{key:<{width}}  {_shown(value)}" for key, value in record.items())

    return Answer(Facts(lines), [record], single=True)


def one(name: str, value: object, feeds: str = "") -> Answer:
    """Answer with one value: a plain one unchanged."""
    shape = Facts(lambda record: str(record[name]), {feeds: name} if feeds else None)
    return Answer(shape, [{name: value}], single=True)


def document(text: bytes, value: Any) -> Answer:
    """Answer with a whole file: `text` when plain, `value` as JSON."""
    return Answer(_Document(text), [value], single=True)


class _Document(Facts):
    """The one entry is the JSON value of a file, whose bytes are `text`."""

    def __init__(self, text: bytes) -> None:
        super().__init__(lambda _value: text.decode(errors="surrogateescape").removesuffix("\n"))
