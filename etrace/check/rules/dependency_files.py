# SPDX-License-Identifier: Apache-2.0
"""Dependency files, as compilers write them -> inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from libetrace.core.regular_file import open_regular

_WORD = re.compile(r"((?:\\\s|\\#|\$\$|[^\s\\]|\\(?!\s))+)")


def text_of_file(path: Path) -> str:
    """Return the text of a regular file; a pipe is not waited for. OSError."""
    with open(open_regular(path), encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        return stream.read()


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
