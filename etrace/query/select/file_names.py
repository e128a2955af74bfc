# SPDX-License-Identifier: Apache-2.0
r"""File names given by the user -> rows of `paths`, and the rules that a name may carry.

A name is tried unchanged, from the working directory, from the source root, through symbolic
links, as a glob when it has `*`, `?` or `[`, else as the end of one path (`lua.o`, `src/lua.o`). An
unknown or ambiguous name is an error that lists the nearest paths.

Options for one file are in the name itself:
`[file=PATH,direct=true,exclude_cmd=GLOB,exclude=GLOB,negate_pattern=true,...]`. A key may be
repeated; a comma in a value is written `\,`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from libetrace.depend.configuration import Rules
from libetrace.image.file import Image

from etrace.errors import EtraceError, NothingFoundError
from etrace.query.rows.path_names import is_directory
from etrace.query.select.filters import truth
from etrace.query.select.link_names import find_through_links, targets
from etrace.query.select.remarks import remark
from etrace.spec.path_style import is_windows_path, same_case, style_of

N_SHOWN = 5
MAGIC = frozenset(b"*?[")


def _places(image: Image, text: bytes) -> tuple[bytes, bytes]:
    """Return a name joined to the working directory, and to the source root."""
    root = os.fsencode(image.attributes.get("source_root", ""))
    return os.path.join(os.getcwdb(), text), os.path.join(root, text)  # noqa: PTH118, PTH109  bytes


def candidates(image: Image, text: bytes) -> Iterable[bytes]:
    """Yield the candidates for a path: unchanged, from here, from the source root.

    `..` after a symbolic link leaves the directory that the link leads to now.
    """
    yield text
    places = _places(image, text)
    if b".." in text:
        parent, name = os.path.split(places[0])
        if name not in (b"", b".", b".."):
            yield os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
    yield from map(os.path.normpath, places)


def find_path(image: Image, text: bytes) -> int:
    """Return the row of `paths` for the name `text`, -1 when there is none.

    The last candidate that is a directory gives way to a file.
    """
    found = -1
    for path in candidates(image, text):
        row = image.find_path(path)
        if row >= 0 and not is_directory(image, row):
            return row
        found = row if found < 0 else found
    return found


def find_files(
    image: Image, names: Iterable[bytes], *, is_exact: bool = True, follows: bool = False
) -> list[int]:
    """Return the distinct rows of all names, in order; EtraceError for an unknown name.

    Without `is_exact` (names that another query gave) unknown ones are left out. A name that
    nothing opened stands for the file that it leads to through links; with `follows`, so does the
    name of a link that the build made, besides the link itself.
    """
    rows: dict[int, None] = {}
    for name in names:
        row = find_path(image, name)
        if row >= 0:
            rows[row] = None
        elif is_exact:
            rows |= dict.fromkeys(_find(image, name))
    return list(targets(image, rows) if follows else rows)


def led(image: Image, name: bytes) -> int:
    """Return the row of the file that a name leads to through links, -1 for none; remark on it."""
    row = find_through_links(image, _places(image, name))
    if row >= 0:
        shown, path = (os.fsdecode(each) for each in (name, image.path_string(row)))
        remark(f"{shown} leads to {path}")
    return row


def _find(image: Image, name: bytes) -> Sequence[int]:
    row = led(image, name)
    if row >= 0:
        return [row]
    if MAGIC & set(name):
        found = _matching(image, name)
        if found:
            return found
    else:
        is_windows = style_of(image.attributes).is_windows
        found = _ending_windows(image, name) if is_windows else _ending(image, name)
        found = [row for row in found if not is_directory(image, row)] or found
        if len(found) == 1:
            return found
    if found:
        raise EtraceError(
            f"{os.fsdecode(name)} could be {len(found)} files",
            f"write more of its path: {_listed(image, found)}",
        )
    raise NothingFoundError(f"the build opened no {os.fsdecode(name)}", _suggestion(image, name))


def _matching(image: Image, glob: bytes) -> list[int]:
    from libetrace.depend.masks import path_mask  # noqa: PLC0415  most names are paths

    prefixes = (b"",) if glob.startswith(b"/") or is_windows_path(glob) else (b"*/",)
    mask = path_mask(image, [prefix + glob for prefix in prefixes])
    return [row for row, hit in enumerate(mask) if hit]


def _ending(image: Image, name: bytes) -> list[int]:
    escaped = b"".join(b"\\" + bytes((c,)) if c in b"*?[\\" else bytes((c,)) for c in name)
    return _matching(image, escaped.removeprefix(b"./")) if name.strip(b"/.") else []


def _ending_windows(image: Image, name: bytes) -> list[int]:
    """Return the paths that are, or end with, a name of Windows: both slashes, any case."""
    wanted = same_case(name).removeprefix(b".\\")
    paths = ((row, same_case(image.path_string(row))) for row in range(image["paths"].n_rows))
    return [row for row, path in paths if path == wanted or path.endswith(b"\\" + wanted)]


def _listed(image: Image, rows: Sequence[int]) -> str:
    shown = [os.fsdecode(image.path_string(row)) for row in rows[:N_SHOWN]]
    return ", ".join(shown) + (", ..." if len(rows) > N_SHOWN else "")


def nearest_paths(paths: Iterable[bytes], name: bytes) -> list[str]:
    """Return up to N_SHOWN paths with a last component similar to the name's, best first."""
    from etrace.alike import nearest  # noqa: PLC0415  rarely needed

    wanted = os.path.basename(os.fsdecode(name))  # noqa: PTH119  may end in a slash
    by_name: dict[str, list[str]] = {}
    for each in paths:
        path = os.fsdecode(each)
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    near = nearest(wanted, by_name, N_SHOWN)
    return [path for each in near for path in by_name[each]][:N_SHOWN]


def _suggestion(image: Image, name: bytes) -> str:
    paths = nearest_paths(map(image.path_string, range(image["paths"].n_rows)), name)
    if not paths:
        return "cas refs lists what it opened"
    return f"did you mean one of these: {', '.join(paths)}"


FLAGS = {
    "direct": "is_direct",
    "ordered": "is_ordered",
    "pipes": "pipes",
    "use_pipes": "pipes",
    "with_pipes": "pipes",
    "wrap_deps": "is_wrapped",
    "wrap": "is_wrapped",
    "programs": "all_programs",
    "negate_pattern": "negate",
    "negate": "negate",
}
PATTERNS = {
    "exclude": "exclude_files",
    "exclude_file": "exclude_files",
    "exclude_files": "exclude_files",
    "exclude_pattern": "exclude_files",
    "exclude_patterns": "exclude_files",
    "exclude_cmd": "exclude_commands",
    "exclude_command": "exclude_commands",
    "exclude_commands": "exclude_commands",
}
FILES = frozenset(("file", "path"))
HINT = "write [file=PATH,direct=true,exclude_cmd=GLOB,exclude=GLOB,negate_pattern=true]"
#: key=value; quotes are those of filters, and `\\,` in a value without them is still a comma
PARTS = r"""(?s)(?:[^,\\="']*=)?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:[^,\\]|\\.)+)"""


def group_by_rules(names: Iterable[bytes], rules: Rules) -> Mapping[Rules, list[bytes]]:
    """Return names grouped by their rules; EtraceError for unknown options."""
    out: dict[Rules, list[bytes]] = {}
    for name in names:
        own, changed = split_rules(name, rules)
        out.setdefault(changed, []).append(own)
    return out


def split_rules(name: bytes, rules: Rules) -> tuple[bytes, Rules]:
    """Return the file name in a target, and the rules for it."""
    text = os.fsdecode(name)
    if not (text.startswith("[") and text.endswith("]") and "=" in text):
        return name, rules
    file: str | None = None
    for part in re.findall(PARTS, text[1:-1]):
        key, is_pair, value = part.partition("=")
        if value[:1] in ('"', "'") and value[-1:] == value[:1]:
            value = value[1:-1]
        key, value = key.strip(), re.sub(r"\\(.)", r"\1", value)
        if not is_pair:
            raise EtraceError(f"{text}: {part!r} has no value", HINT)
        if key in FILES:
            file = value
        else:
            rules = _changed(rules, text, key, value)
    if not file:
        raise EtraceError(f"{text}: no file", HINT)
    return os.fsencode(file), rules


def _changed(rules: Rules, text: str, key: str, value: str) -> Rules:
    if key in FLAGS:
        return _replaced(rules, FLAGS[key], lambda _: truth(value))
    if key in PATTERNS:
        return _replaced(rules, PATTERNS[key], lambda old: (*old, os.fsencode(value)))
    raise EtraceError(f"{text}: no option {key!r}", HINT)


def _replaced(rules: Rules, name: str, change: Callable[[Any], Any]) -> Rules:
    return rules._replace(**{name: change(getattr(rules, name))})
