# SPDX-License-Identifier: Apache-2.0
"""Dependency files, as compilers write them -> inputs."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from libetrace.core.regular_file import open_regular

from etrace.nfsdb.above import my_users

ROOT = 0
MAX_BYTES = 1 << 30
_WORD = re.compile(r"((?:\\\s|\\#|\$\$|[^\s\\]|\\(?!\s))+)")


def data_of_file(path: Path) -> bytes:
    """Return the content of a regular file; a pipe is not waited for. OSError.

    Root reads no files of others: what these say would count as root's own.
    """
    with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
        if os.geteuid() == ROOT and not _is_roots(os.fstat(stream.fileno())):
            raise OSError(
                errno.EACCES, "others own or may change it: root does not read it", str(path)
            )
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"more than {MAX_BYTES >> 20} MB", str(path))
    return data


def _is_roots(status: os.stat_result) -> bool:
    """Whether root reads it; native/sandbox/answer.c has the same rule for make."""
    is_private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_uid == ROOT or not is_private:
        return status.st_uid == ROOT and is_private
    return status.st_uid in my_users()


def text_of_file(path: Path) -> str:
    """Return the text of a file: see data_of_file()."""
    return data_of_file(path).decode("utf-8", "surrogateescape")


def inputs(path: Path) -> Iterator[str]:
    """Yield the inputs that a dependency file names; none when it is not there."""
    try:
        text = text_of_file(path)
    except OSError:
        return
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        _, _, needs = line.partition(": ")
        for word in _WORD.findall(needs):
            yield re.sub(r"\\([\s#])", r"\1", word).replace("$$", "$")
