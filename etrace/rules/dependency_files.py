# SPDX-License-Identifier: Apache-2.0
"""Dependency files, as compilers write them -> inputs.

gcc, clang, MSVC (the text of /showIncludes) and others write them; ninja reads them by
depfile_parser.in.cc and CMake, for its makefiles, by cmGccDepfileLexer.in.l. A rule ends with its
line unless a backslash continues it. A blank ends a name unless an odd number of backslashes is
before it; a backslash escapes `#` and `:`, and `$$` is `$`. A colon ends the targets when a blank
or the end of the line follows it, so that `C:/x.h` is one name. Both readers take `DIR/../x.h` for
`x.h`, even where DIR is a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

from libetrace.core.regular_file import read_regular

from etrace.nfsdb.above import my_users

ROOT = 0
#: of one dependency file, as compilers write them
MAX_BYTES = 64 << 20
_CONTINUED = re.compile(r"\\\r?\n")
#: backslashes before a blank: the same in pairs, and one that is of the blank
_KEPT_BLANK = re.compile(r"(?<!\\)((?:\\\\)*)\\[ \t]")
_ESCAPED = re.compile(r"\\([#:])|\$(\$)")
_WORD = re.compile(r"[^ \t\r]+")
#: what no name has, in place of a blank that is part of one
_BLANK = "\0"
_INCLUDED = re.compile(r"Note: including file:[ \t]*(.*?)\r?")


def data_of_file(path: Path, max_bytes: int, *, is_text: bool = False) -> bytes:
    """Return the content of a regular file; a pipe is not waited for. OSError.

    Root reads no files of others: what these say would count as root's own.
    """
    allows = _is_roots if os.geteuid() == ROOT else None
    return read_regular(path, max_bytes, allows, is_text=is_text)


def _is_roots(status: os.stat_result) -> bool:
    """Whether root reads it; native/sandbox/answer.c has the same rule for make."""
    is_private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_uid == ROOT or not is_private:
        return status.st_uid == ROOT and is_private
    return status.st_uid in my_users()


def text_of_file(path: Path, max_bytes: int) -> str:
    """Return the text of a file: see data_of_file()."""
    return data_of_file(path, max_bytes, is_text=True).decode("utf-8", "surrogateescape")


def inputs(path: Path) -> Iterator[str]:
    """Yield the inputs that a dependency file names; none when it is not there."""
    for _, needs in rules(path):
        yield from needs


def rules(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the targets and inputs of each rule of a dependency file; none when it is not there."""
    try:
        text = text_of_file(path, MAX_BYTES)
    except OSError:
        return
    for line in _CONTINUED.sub(" ", text).split("\n"):
        if found := _INCLUDED.fullmatch(line):
            yield [], [normpath(found[1])]
        elif not line.startswith("#"):
            yield _names(line)


def _names(line: str) -> tuple[list[str], list[str]]:
    """Return the names before and after the colon of a line."""
    # of 2N + 1 backslashes before a blank N are part of the name, as the blank is
    line = _KEPT_BLANK.sub(lambda found: "\\" * (len(found[1]) // 2) + _BLANK, line)
    targets, needs, is_need = list[str](), list[str](), False
    for word in _WORD.finditer(line):
        is_last = not is_need and word[0].endswith(":")
        name = _ESCAPED.sub(r"\1\2", word[0].removesuffix(":") if is_last else word[0])
        (needs if is_need else targets).append(normpath(name.replace(_BLANK, " ")))
        is_need = is_need or is_last
    return targets, needs
