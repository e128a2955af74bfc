# SPDX-License-Identifier: Apache-2.0
"""The output of queries: selection, lines, JSON in an envelope, counts, pages.

Options that select (`-n`, `-p`, `--range`, `--sorted`, ..) belong to the module after which they
are; those that show (`--json`, `-o`, ..) may be anywhere. Both may be before the first
module; then they belong to the last one.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etrace.cli.ending import printable
from etrace.cli.options.common import add_format, whole
from etrace.cli.show.answer import Answer, Style
from etrace.errors import EtraceError, NothingFoundError, UsageError

if TYPE_CHECKING:
    from typing import BinaryIO

#: of a trace: what is beside it and cannot be made again
KEPT_SUFFIXES = (".rsp", ".accesses", ".stats", ".hashes")
#: a stream could not be written
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: options for `output.show`; allowed before or after any module
SHOWN = ("format", "details", "count", "nul", "fmt", "output", "raw_command", "original_path",
         "relative", "page_size", "page", "usual_page_size")  # fmt: skip
#: options for `output.arranged`; given after the module to which they apply
CHOSEN = ("range", "sorted", "sorting_key", "reverse")


#: options about how an entry is shown: see `Shape.styles`
STYLES = ("relative", "original_path", "raw_command")
#: options that need several entries
OF_ENTRIES = ("page_size", "page", "count", "nul", "details")
#: attributes that are not called like their option
NAMES = {"nul": "--null", "page_size": "--entries-per-page"}


def _natural(text: str) -> int:
    number = whole(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def _slice(text: str) -> slice:
    parts = text.strip("[]").split(":")
    wrong = argparse.ArgumentTypeError(f"{text!r} is not START:END or START:END:STEP")
    try:
        numbers = [whole(part) if part else None for part in parts]
    except ValueError:
        raise wrong from None
    if len(numbers) not in (2, 3) or numbers[2:] == [0]:
        raise wrong
    return slice(*numbers)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every query."""
    parser.set_defaults(usual_page_size=0)
    add = parser.add_argument_group("selection").add_argument
    add("-s", "--sorted", action="store_true", help="sort entries by their lines")
    add("--sorting-key", metavar="KEY", help="sort by a key of the JSON that --details shows")
    add("--reverse", action="store_true", help="reverse the order")
    add("--range", type=_slice, metavar="A:B[:C]", help="entries A to B - 1, as a Python slice")
    group = parser.add_argument_group("output")
    add = group.add_argument
    add("-n", "--entries-per-page", dest="page_size", type=_natural, default=0, metavar="N",
        help="N entries on a page (default: all on one)")  # fmt: skip
    add("-p", "--page", type=_natural, default=0, metavar="P", help="page P, from 0")
    add("-l", "--count", action="store_true", help="print only the number of entries")
    add_format(group, "text", "json")
    add("--plain", dest="format", action="store_const", const="text", help=argparse.SUPPRESS)
    add("--details", action="store_true", help="all fields of each entry")
    add(
        "--fmt",
        metavar="TEXT",
        help="print TEXT for each entry; {KEY} is a key of --details --json",
    )
    add(
        "-0",
        "--null",
        dest="nul",
        action="store_true",
        help="end entries with NUL instead of a newline",
    )
    add("-R", "--relative", action="store_true", help="paths relative to the source root")
    add("--original-path", action="store_true", help="paths as the programs gave them")
    add("--raw-command", action="store_true", help="commands without shell quoting")
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to FILE, which appears whole or not at all",
    )


def carried(
    before: argparse.Namespace, common: argparse.Namespace, *, is_last: bool
) -> argparse.Namespace:
    """Return the options before a query that hold for it."""
    names = ("database", *SHOWN)
    given = {name: getattr(before, name) for name in names}
    if is_last:
        given |= {name: getattr(common, name) for name in CHOSEN}
    return argparse.Namespace(**given)


# ---- selection ----


def _sorted(answer: Answer, name: str, style: Style, *, reverse: bool) -> list[Any]:
    """Sort by a key of the records; entries that lack it are last in either order."""
    known: list[tuple[tuple[bool, Any], Any]] = []
    unknown: list[Any] = []
    for item in answer.items:
        value = _field(answer.shape.record(item, style), name)
        if value is None:
            unknown.append(item)
        else:
            known.append((_sort_key(value), item))
    known.sort(key=lambda each: each[0])
    found = [item for _, item in known]
    return [*(found[::-1] if reverse else found), *unknown]


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Return what orders a value: numbers first."""
    if isinstance(value, str) and value.lstrip("-").isdigit():
        value = int(value)  # times are text, for JSON has no such numbers
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else str(value)


def arranged(answer: Answer, args: argparse.Namespace) -> Answer:
    """Sort and cut entries as the query's options say."""
    if answer.single:
        _refuse(args, CHOSEN, "the answer is one record")
        return answer
    items, style = answer.items, Style()
    if args.sorting_key:
        items = _sorted(answer, args.sorting_key, style, reverse=args.reverse)
    elif args.sorted:
        items = sorted(items, key=lambda item: answer.shape.plain(item, style))
    if args.reverse and not args.sorting_key:
        items = items[::-1]
    if args.range is not None:
        items = items[args.range]
    return Answer(answer.shape, items)


# ---- output ----


def _field(record: Any, name: str) -> Any:
    if name in record:
        return record[name]
    from etrace.alike import suggestion

    raise UsageError(f"no key {name!r} here", suggestion(name, list(record)))


def _formatter(answer: Answer, text: str, style: Style) -> Callable[[Any], bytes]:
    """Return the function that formats an entry by `--fmt`; UsageError for an unbalanced brace."""
    from string import Formatter

    try:
        parts = [(literal, name) for literal, name, _, _ in Formatter().parse(text)]
    except ValueError as error:
        raise UsageError(
            f"--fmt {text!r}: {error}", "write {{ and }} for literal braces"
        ) from error

    def render(item: Any) -> bytes:
        record = answer.shape.record(item, style)
        shown = (lit + ("" if name is None else _text(_field(record, name))) for lit, name in parts)
        return os.fsencode("".join(shown))

    return render


def _text(value: Any) -> str:
    """Return a value as `--fmt` shows it: lists as words of a shell, nothing for null."""
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return shlex.join(value)
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _page(answer: Answer, args: argparse.Namespace) -> Any:
    size = _page_size(args)
    return answer.items[args.page * size :][:size] if size else answer.items


def _page_size(args: argparse.Namespace) -> int:
    return int(args.page_size or args.usual_page_size)


def encode(value: Any) -> bytes:
    r"""Return JSON in UTF-8; bytes that are not UTF-8 are written as \udcXX."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def indented(value: Any) -> bytes:
    """Return JSON for people and other tools, over several lines."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _entries(answer: Answer, args: argparse.Namespace, style: Style) -> Iterator[bytes]:
    shape = answer.shape
    render = shape.record if args.details else shape.entry
    comma = b"\n"
    for item in _page(answer, args):
        yield comma + encode(render(item, style))
        comma = b",\n"


def _envelope(answer: Answer, args: argparse.Namespace, style: Style) -> Iterator[bytes]:
    """Yield the JSON of an answer: see docs/queries.md."""
    if answer.single:
        yield encode(answer.shape.record(answer.items[0], style)) + b"\n"
        return
    n_items, size = len(answer.items), _page_size(args)
    head = {
        "count": n_items,
        "page": args.page if size else 0,
        "page_max": max(0, -(-n_items // size) - 1) if size else 0,
        "entries_per_page": size,
        "num_entries": len(_page(answer, args)),
    }
    yield encode(head)[:-1] + b',"entries":['
    yield from _entries(answer, args, style)
    yield b"]}\n"


def _lines(answer: Answer, args: argparse.Namespace, style: Style) -> Iterator[bytes]:
    shape = answer.shape
    end = b"\0" if args.nul else b"\n"
    if args.fmt is not None:
        render = _formatter(answer, args.fmt, style)
    else:
        line = shape.details if args.details else shape.plain
        render = lambda item: line(item, style)  # noqa: E731
        heading = getattr(shape, "heading", "")
        if heading and answer.items and not args.nul:
            yield heading.encode() + end
    for item in _page(answer, args):
        yield render(item) + end


def _refuse(args: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Refuse options that would do nothing. UsageError."""
    for name in names:
        if getattr(args, name) not in (None, False, 0):
            option = NAMES.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{option} does nothing here: {reason}", "leave it out")


def _check(answer: Answer, args: argparse.Namespace) -> None:
    if answer.single:
        _refuse(args, OF_ENTRIES, "the answer is one record")
    useless = [name for name in STYLES if name not in answer.shape.styles]
    _refuse(args, useless, "no entry shows that")
    if args.format == "json":
        _refuse(args, ("nul",), "JSON has no lines")
    if args.page and not _page_size(args):
        raise UsageError("--page needs -n", "-n N sets the number of entries on a page")
    if args.format == "json" and args.fmt is not None:
        raise UsageError("--fmt and --json exclude each other", "leave one of them out")


def pieces(answer: Answer, args: argparse.Namespace, style: Style) -> Iterable[bytes]:
    """Return the pieces of the output."""
    if args.count:
        n_items = len(answer.items)
        return (encode({"count": n_items}) + b"\n" if args.format == "json" else b"%d\n" % n_items,)
    return (_envelope if args.format == "json" else _lines)(answer, args, style)


def _write(stream: BinaryIO, parts: Iterable[bytes]) -> None:
    room: list[bytes] = []
    n_bytes = 0
    for part in parts:
        room.append(part)
        n_bytes += len(part)
        if n_bytes > 1 << 16:
            stream.write(b"".join(room))
            room, n_bytes = [], 0
    stream.write(b"".join(room))


@contextmanager
def writing(path: Path, *models: Path) -> Iterator[BinaryIO]:
    """Yield a stream to the file of `-o`, which appears whole or not at all. OSError.

    A link of this user or of root is followed; what is not a regular file (/dev/null, a
    pipe) is written to unchanged. Nobody can read a file who cannot read `models`, or could not
    read the file that was there.
    """
    from libetrace.core.folders import followed, narrow
    from libetrace.image.file import replacing

    given, path = path, followed(path)
    _refuse_inputs(given, path, models)
    with _naming(given):
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
            return
        known = [*models, path] if path.exists() else models
        with replacing(path, models=models) as stream:
            narrow(stream.fileno(), known)
            yield stream


def _refuse_inputs(given: Path, path: Path, models: Sequence[Path]) -> None:
    """Refuse to write over the database or its trace. UsageError."""
    for model in models:
        trace = model.with_suffix("")  # of .nfsdb.img
        for each in (model, trace, *(Path(f"{trace}{suffix}") for suffix in KEPT_SUFFIXES)):
            with suppress(FileNotFoundError):
                if path.samefile(each):
                    raise UsageError(
                        f"{given}: the output would replace {each}, its own source",
                        "give another file with -o",
                    )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error about a full disk, which a stream does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in FULL:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


class _Tame(io.RawIOBase):
    """A stream to a terminal that escapes control characters."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._terminal.write(printable(self._decode(bytes(data))).encode(errors="replace"))
        return len(data)


@contextmanager
def opened(path: Path | None, *models: Path) -> Iterator[BinaryIO]:
    """Yield the stream of `-o`: `writing(path)`, or standard output without a path."""
    if path is None:
        if sys.stdout is None:  # `>&-`
            raise EtraceError("standard output is closed", "give -o FILE, or leave it open")
        shown: Any = _Tame(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        yield shown
        sys.stdout.buffer.flush()
        return
    with writing(path, *models) as stream:
        yield stream


def _tame(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with control characters escaped for a terminal; a path may hold any bytes."""
    for part in parts:
        yield printable(part.decode(errors="surrogateescape")).encode(errors="replace")


def put(text: str) -> None:
    """Write text to standard output; for a terminal control characters are escaped."""
    if sys.stdout is not None:
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def show(
    answer: Answer, args: argparse.Namespace, root: bytes = b"", models: Sequence[Path] = ()
) -> int:
    """Write an answer as the options say; returns the exit status.

    Nobody can read the file of `-o` who cannot read `models`, the sources of the answer.
    """
    _check(answer, args)
    for_machines = (
        args.format == "json" or args.nul or args.output is not None or sys.stdout is None
    )
    one_line = not for_machines and sys.stdout.isatty()
    relative = root if args.relative else b""
    style = Style(relative, args.original_path, args.raw_command, one_line)
    parts = pieces(answer, args, style)
    if args.output is not None:
        with writing(args.output, *models) as stream:
            _write(stream, parts)
    elif sys.stdout is not None:
        sys.stdout.flush()
        _write(sys.stdout.buffer, _tame(parts) if sys.stdout.isatty() else parts)
    return 0 if answer.single or len(answer.items) else NothingFoundError.status
