# SPDX-License-Identifier: Apache-2.0
"""Response files: `@FILE` in an argv -> the arguments that are in the file.

How a tool names them, decodes and splits them say etrace/compilers/*.toml (response_forms.py).
What a file held while the command ran counts when it was captured (etrace/capture); else the file
is read as it is now, which may be after the build: what is gone is reported.

Names and contents are those of whoever wrote the trace. So a file is read and split once, and there
are limits for a file, a command, all commands together, and how deep files name files; what lies
beyond one counts as gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from etrace.compilers.regular_file import read_regular
from etrace.compilers.response_forms import Form, Naming, naming_of
from etrace.compilers.tools import Tool
from etrace.spec.path_style import POSIX_STYLE, PathStyle

#: libiberty gives up there too
MAX_FILES = 2000
MAX_DEPTH = 32
#: the largest links of browsers have 3 MB
MAX_FILE_BYTES = 8 << 20
MAX_COMMAND_BYTES = 16 << 20
#: of different contents, for all commands that one object reads; the tracer keeps 64 MB
MAX_BYTES = 128 << 20
#: expanded for all commands, however often the same: ten thousand links of 200 kB
MAX_EXPANDED_BYTES = 2 << 30
#: text whose words are remembered
MAX_REMEMBERED_BYTES = 16 << 20
#: (upid of the command, absolute path) -> what was captured; None when nothing was
Captured = Callable[[int, bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class Expanded:
    """`argv` with what the files held; `missing` are the absolute paths that could not be read."""

    argv: tuple[bytes, ...]
    missing: tuple[bytes, ...] = ()


class ResponseFiles:
    """Expands the command lines of one database."""

    def __init__(
        self,
        captured: Captured | None = None,
        *,
        reads_disk: bool = True,
        style: PathStyle = POSIX_STYLE,
    ) -> None:
        """Files that `captured` does not have are read as they are now if `reads_disk`.

        Those of a build on Windows are not on this machine's disk.
        """
        self._captured, self._reads_disk = captured, reads_disk and not style.is_windows
        self.style = style
        self._words: dict[tuple[int, bytes, str], tuple[list[bytes], int]] = {}
        self._n_remembered = 0
        self._counted = set[int]()
        self._n_left = MAX_BYTES
        self._n_expanded_left = MAX_EXPANDED_BYTES

    def expand(
        self,
        argv: Sequence[bytes],
        cwd: bytes | os.PathLike[str],
        upid: int = 0,
        *,
        tool: Tool | None = None,
        keeps_missing: bool = False,
    ) -> Expanded:
        """Replace each name of a file by the arguments in it, nested ones too.

        Relative names are to `cwd`; `upid` ran the command, which is `tool`'s, by default that of
        its name. The path of a file that cannot be read is listed, and its argument is left out
        unless `keeps_missing`. argv[0] stays.
        """
        if not argv:
            return Expanded(())
        naming = self._naming(argv, tool)
        if not naming.names(argv[1:]):
            return Expanded(tuple(argv))
        return self._expand(argv, os.fsencode(cwd), upid, naming, keeps_missing)

    def _naming(self, argv: Sequence[bytes], tool: Tool | None) -> Naming:
        return naming_of(argv, tool, is_windows=self.style.is_windows)

    def text(self, argv: Sequence[bytes], cwd: bytes, upid: int = 0) -> bytes | None:
        """Return what all response files of a command line hold, None when none can be read.

        The contents are in order, a newline between them; in place of words that name a file
        is its content. Splitting the text gives the words that `expand` puts in.
        """
        if not argv or not (naming := self._naming(argv, None)).names(argv[1:]):
            return None
        inliner = _Inliner(self, naming, cwd, upid)
        named = naming.files(argv[1:])
        found = [text for text in map(inliner.text, named) if text is not None]
        return b"\n".join(found) if found else None

    def _expand(
        self, argv: Sequence[bytes], cwd: bytes, upid: int, naming: Naming, keeps_missing: bool
    ) -> Expanded:
        out, missing = list(argv[:1]), dict[bytes, None]()
        todo = [(argument, 0) for argument in reversed(argv[1:])]
        n_files, n_left = 0, MAX_COMMAND_BYTES
        while todo:
            argument, depth = todo.pop()
            if depth and not naming.form.nested:
                out.append(argument)
                continue
            named, name = [argument], naming.file_in(argument)
            if naming.takes_next(argument) and todo and todo[-1][1] == depth:
                name = todo.pop()[0]
                named.append(name)
            if name is None:
                out.append(naming.meaning(argument))
                continue
            path = self.style.join(cwd, name)
            is_allowed = n_files < MAX_FILES and depth < MAX_DEPTH
            n_most = min(n_left, self._n_expanded_left)
            found = self._read(upid, path, n_most, naming.form) if is_allowed else None
            n_files += 1
            if found is None:
                missing[path] = None
                if keeps_missing:
                    out += named
                continue
            words, n_bytes = found
            n_left -= n_bytes
            self._n_expanded_left -= n_bytes
            todo.extend((word, depth + 1) for word in reversed(words))
        return Expanded(tuple(out), tuple(missing))

    def _read(
        self, upid: int, path: bytes, n_left: int, form: Form
    ) -> tuple[list[bytes], int] | None:
        """Return the words of a file of at most `n_left` bytes, and how many bytes it has."""
        text = None if self._captured is None else self._captured(upid, path)
        key = (0 if text is None else upid, path, form.name)
        found = self._words.get(key)
        if found is None:
            text = self.read(upid, path, n_left)
            if text is None:
                return None
            found = self._remember(key, text, form)
        return found if found[1] <= n_left else None

    def read(self, upid: int, path: bytes, n_left: int) -> bytes | None:
        """Return the content of a file of at most `n_left` bytes, None beyond the limits."""
        text = None if self._captured is None else self._captured(upid, path)
        if text is None and self._reads_disk:
            text = read_regular(path, min(MAX_FILE_BYTES, n_left))
        if text is None or len(text) > n_left or not self._counts(text):
            return None
        return text

    def take(self, n_bytes: int) -> bool:
        """Count bytes of an expanded command line; False beyond the limit for all commands."""
        self._n_expanded_left -= n_bytes
        return self._n_expanded_left >= 0

    def _counts(self, text: bytes) -> bool:
        """Return whether a content is within the limit of all, which counts each one once."""
        if (identity := hash(text)) in self._counted:
            return True
        if len(text) > self._n_left:
            self._n_expanded_left -= len(text)  # reading in vain has an end as well
            return False
        self._counted.add(identity)
        self._n_left -= len(text)
        return True

    def _remember(
        self, key: tuple[int, bytes, str], text: bytes, form: Form
    ) -> tuple[list[bytes], int]:
        self._n_remembered += len(text)
        if self._n_remembered > MAX_REMEMBERED_BYTES:
            self._words.clear()
            self._n_remembered = len(text)
        found = self._words[key] = (form.split(form.decode(text)), len(text))
        return found


class _Inliner:
    """Puts the contents of the files of one command line into each other, within the limits."""

    def __init__(self, files: ResponseFiles, naming: Naming, cwd: bytes, upid: int) -> None:
        self._files, self._naming, self._cwd, self._upid = files, naming, cwd, upid
        self._n_files, self._n_left = 0, MAX_COMMAND_BYTES

    def text(self, name: bytes, depth: int = 0) -> bytes | None:
        """Return the content of a file with that of nested ones; None when it cannot be read."""
        if self._n_files >= MAX_FILES or depth >= MAX_DEPTH:
            return None
        self._n_files += 1
        path = self._files.style.join(self._cwd, name)
        text = self._files.read(self._upid, path, self._n_left)
        if text is None or not self._files.take(len(text)):
            return None
        self._n_left -= len(text)
        text = self._naming.form.decode(text)
        may_name = b"@" in text or self._naming.has_options
        return self._inlined(text, depth) if may_name and self._naming.form.nested else text

    def _inlined(self, text: bytes, depth: int) -> bytes:
        out, at = list[bytes](), 0
        words = self._naming.form.words(text)
        for word in words:
            name, end = self._naming.file_in(word.text), word.end
            if self._naming.takes_next(word.text) and (following := next(words, None)) is not None:
                name, end = following.text, following.end
            found = None if name is None else self.text(name, depth + 1)
            if found is not None:
                out += (text[at : word.start], found)
                at = end
        return b"".join((*out, text[at:]))
