# SPDX-License-Identifier: Apache-2.0
"""Response files: `@FILE` in an argv -> the arguments that lie in the file.

Quoting as GNU and LLVM tools do it (libiberty buildargv, LLVM TokenizeGNUCommandLine): blanks
separate, single and double quotes group, a backslash makes the next byte literal, everywhere.
What a file held while the command ran counts when it was captured (etrace/capture); else the file
is read as it is now, which may be after the build: what is gone is reported.

Names and contents are those of whoever wrote the trace. So a file is read and split once, and there
are limits for a file, a command, all commands together, and how deep files name files; what lies
beyond one counts as gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from etrace.compilers.regular_file import read_regular
from etrace.compilers.windows_words import (
    WINDOWS_WORD,
    quotes_as_windows,
    split_windows,
    unquoted_windows,
)
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
QUOTES = (b"'", b'"')
#: (upid of the command, absolute path) -> what was captured; None when nothing was
Captured = Callable[[int, bytes], bytes | None]

_WORD = re.compile(
    rb"""(?> [^\s'"\\]++ | \\(?:.|\Z) | '(?>[^'\\]++|\\.)*+(?:'|\\?\Z)
           | "(?>[^"\\]++|\\.)*+(?:"|\\?\Z) )++""",
    re.VERBOSE | re.DOTALL,
)
#: what a word holds beside plain text; a text may end inside of quotes or after a backslash
_QUOTING = re.compile(
    rb"""\\(.|\Z) | '((?>[^'\\]++|\\.)*+)(?:'|\\?\Z) | "((?>[^"\\]++|\\.)*+)(?:"|\\?\Z)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expanded:
    """`argv` with what the files held; `missing` are the absolute paths that could not be read."""

    argv: tuple[bytes, ...]
    missing: tuple[bytes, ...] = ()


def split(text: bytes) -> list[bytes]:
    """Split the content of a response file into arguments."""
    if b"\\" not in text and b"'" not in text and b'"' not in text:
        return text.split()
    return [_unquoted(word) for word in _WORD.findall(text)]


def _unquoted(word: bytes) -> bytes:
    if b"\\" not in word:  # these two are nearly all
        n_quotes = word.count(b"'") + word.count(b'"')
        if n_quotes == 0:
            return word
        if n_quotes == 2 and word[:1] in QUOTES and word[:1] == word[-1:]:
            return word[1:-1]
    return _QUOTING.sub(_literal, word)


def _literal(match: re.Match[bytes]) -> bytes:
    escaped, single, double = match.groups()
    if escaped is not None:
        return bytes(escaped)
    return _ESCAPED.sub(rb"\1", single if single is not None else double)


def _names_file(argument: bytes) -> bool:
    return argument.startswith(b"@") and len(argument) > 1


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
        self._words: dict[tuple[int, bytes, bool], tuple[list[bytes], int]] = {}
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
        keeps_missing: bool = False,
    ) -> Expanded:
        """Replace each `@FILE` by the arguments in FILE, nested ones too.

        Relative names are to `cwd`; `upid` ran the command. The path of a file that cannot be read
        is listed, and its argument is left out unless `keeps_missing`. argv[0] stays.
        """
        if not any(argument.startswith(b"@") for argument in argv[1:]):
            return Expanded(tuple(argv))
        return self._expand(argv, os.fsencode(cwd), upid, keeps_missing)

    def text(self, argv: Sequence[bytes], cwd: bytes, upid: int = 0) -> bytes | None:
        """Return what all response files of a command line hold, None when none can be read.

        The contents stand in order, a newline between them; in place of a word `@FILE` stands the
        content of that file. Splitting the text gives the words that `expand` puts in.
        """
        if not any(argument.startswith(b"@") for argument in argv[1:]):
            return None
        inliner = _Inliner(self, argv[0], cwd, upid)
        named = (argument for argument in argv[1:] if _names_file(argument))
        found = [text for text in map(inliner.text, named) if text is not None]
        return b"\n".join(found) if found else None

    def _expand(
        self, argv: Sequence[bytes], cwd: bytes, upid: int, keeps_missing: bool
    ) -> Expanded:
        out, missing = list(argv[:1]), dict[bytes, None]()
        is_windows = self.style.is_windows and quotes_as_windows(argv[0])
        todo = [(argument, 0) for argument in reversed(argv[1:])]
        n_files, n_left = 0, MAX_COMMAND_BYTES
        while todo:
            argument, depth = todo.pop()
            if not _names_file(argument):
                out.append(argument)
                continue
            path = self.style.join(cwd, argument[1:])
            is_allowed = n_files < MAX_FILES and depth < MAX_DEPTH
            n_most = min(n_left, self._n_expanded_left)
            found = self._read(upid, path, n_most, is_windows) if is_allowed else None
            n_files += 1
            if found is None:
                missing[path] = None
                if keeps_missing:
                    out.append(argument)
                continue
            words, n_bytes = found
            n_left -= n_bytes
            self._n_expanded_left -= n_bytes
            todo.extend((word, depth + 1) for word in reversed(words))
        return Expanded(tuple(out), tuple(missing))

    def _read(
        self, upid: int, path: bytes, n_left: int, is_windows: bool
    ) -> tuple[list[bytes], int] | None:
        """Return the words of a file of at most `n_left` bytes, and how many bytes it has."""
        text = None if self._captured is None else self._captured(upid, path)
        key = (0 if text is None else upid, path, is_windows)
        found = self._words.get(key)
        if found is None:
            text = self.read(upid, path, n_left)
            if text is None:
                return None
            found = self._remember(key, text)
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
        """Tell whether a content is within the limit of all, which counts each one once."""
        if (identity := hash(text)) in self._counted:
            return True
        if len(text) > self._n_left:
            self._n_expanded_left -= len(text)  # reading in vain has an end as well
            return False
        self._counted.add(identity)
        self._n_left -= len(text)
        return True

    def _remember(self, key: tuple[int, bytes, bool], text: bytes) -> tuple[list[bytes], int]:
        self._n_remembered += len(text)
        if self._n_remembered > MAX_REMEMBERED_BYTES:
            self._words.clear()
            self._n_remembered = len(text)
        words = split_windows(text) if key[2] else split(text)
        found = self._words[key] = (words, len(text))
        return found


class _Inliner:
    """Puts the contents of the files of one command line into each other, within the limits."""

    def __init__(self, files: ResponseFiles, program: bytes, cwd: bytes, upid: int) -> None:
        self._files, self._cwd, self._upid = files, cwd, upid
        self._n_files, self._n_left = 0, MAX_COMMAND_BYTES
        self._is_windows = files.style.is_windows and quotes_as_windows(program)

    def text(self, argument: bytes, depth: int = 0) -> bytes | None:
        """Return the content of `@FILE` with that of nested ones; None when it cannot be read."""
        if self._n_files >= MAX_FILES or depth >= MAX_DEPTH:
            return None
        self._n_files += 1
        path = self._files.style.join(self._cwd, argument[1:])
        text = self._files.read(self._upid, path, self._n_left)
        if text is None or not self._files.take(len(text)):
            return None
        self._n_left -= len(text)
        if b"@" not in text:
            return text

        def inlined(match: re.Match[bytes]) -> bytes:
            word = unquoted_windows(match[0]) if self._is_windows else _unquoted(match[0])
            found = self.text(word, depth + 1) if _names_file(word) else None
            return match[0] if found is None else found

        return (WINDOWS_WORD if self._is_windows else _WORD).sub(inlined, text)
