# SPDX-License-Identifier: Apache-2.0
"""Response files of a replayed build: ninja or make wrote them and removed them after the command.

ninja writes one itself (`rspfile`), as long as its content is one line; the shell writes all
others. What neither can write, because the kernel allows no longer word, is not replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import dirname

from etrace.export.makefile import quote

#: of the word that `sh -c` gets; Linux allows 131,072 bytes (MAX_ARG_STRLEN)
MAX_BYTES = 120_000
#: programs that take one argument from each line
BY_LINE = frozenset({"rustc"})


@dataclass(frozen=True, slots=True)
class Written:
    """What an edge needs beside its commands.

    `file` and `content` are for ninja's `rspfile`, as ninja reads them; `before` and `after` are
    commands.
    """

    file: str = ""
    content: str = ""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def write_back(files: Mapping[str, bytes], program: str) -> Written | None:
    """Return how to write response files; None when that cannot be done."""
    if not files:
        return Written()
    by_ninja, line = "", ""
    for path, content in sorted(files.items(), key=lambda each: (-len(each[1]), each[0])):
        found = _line(content, program)
        if found is not None:
            by_ninja, line = path, found
            break
    rest = {path: content for path, content in files.items() if path != by_ninja}
    if sum(map(len, rest.values())) > MAX_BYTES:
        return None
    folders = sorted({quote(dirname(path)) for path in files})
    before = [f"mkdir -p {' '.join(folders)}"] if rest else []
    before += [f"printf %s {quote(_text(rest[path]))} > {quote(path)}" for path in sorted(rest)]
    after = [f"rm -f {' '.join(map(quote, sorted(rest)))}"] if rest else []
    return Written(by_ninja, _escaped(line), before, after)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _line(content: bytes, program: str) -> str | None:
    """Return a content as one line that means the same, None when there is none."""
    text = _text(content.strip())
    if "\n" not in text and "\r" not in text:
        return text
    # a short one keeps its lines: the shell writes it
    if len(content) <= MAX_BYTES or program in BY_LINE or any(each in text for each in "\"'\\"):
        return None
    return " ".join(text.split())


def _escaped(line: str) -> str:
    return line.replace("$", "$$")


def lines(written: Written) -> Iterator[str]:
    """Yield the variables of an edge."""
    if written.file:
        yield f"  file = {written.file.replace('$', '$$')}"
        yield f"  content = {written.content}"
