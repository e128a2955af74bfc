# SPDX-License-Identifier: Apache-2.0
"""Dependency files, as compilers write them -> inputs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from libetrace.core.regular_file import read_regular

from etrace.nfsdb.above import my_users

ROOT = 0
#: of one dependency file, as compilers write them
MAX_BYTES = 64 << 20
_WORD = re.compile(r"((?:\\\s|\\#|\$\$|[^\s\\]|\\(?!\s))+)")


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
    try:
        text = text_of_file(path, MAX_BYTES)
    except OSError:
        return
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").split("\n"):
        _, _, needs = line.removesuffix("\r").partition(": ")
        for word in _WORD.finditer(needs):
            yield re.sub(r"\\([\s#])", r"\1", word[0]).replace("$$", "$")
