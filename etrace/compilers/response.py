# SPDX-License-Identifier: Apache-2.0
"""Response files: `@FILE` in an argv -> the arguments that are in the file.

Some tools name them by an option, too: `--via FILE` of Arm's, `-f FILE` of IAR's. Those are the
options with the meaning `response` in etrace/compilers/*.toml.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from etrace.compilers import tools
from etrace.compilers.options import Form, split_form
from etrace.compilers.regular_file import read_regular
from etrace.spec.path_style import POSIX_STYLE, PathStyle, program_name

#: a word: backslashes before a quote are half as many, then the quote groups or stands for itself
WINDOWS_WORD = re.compile(
    rb"""(?> [^\s"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)*+
             "(?> [^"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)++(?=") | "" )*+ (?:"|\Z) )++""",
    re.VERBOSE,
)
_GNU = re.compile(rb"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|ar|ld|as)(?:-[\d.]+)?|tcc|collect2|cc1|cc1plus")
_LLVM = re.compile(rb"(?:llvm-|clang).*")


def quotes_as_windows(program: bytes) -> bool:
    """Return whether a program of Windows cuts its response files as Windows does command lines."""
    name = program_name(program).rpartition(b"\\")[2].lower()
    return _LLVM.fullmatch(name) is not None or _GNU.fullmatch(name) is None


def split_windows(text: bytes) -> list[bytes]:
    """Split text into words."""
    return [unquoted_windows(word) for word in WINDOWS_WORD.findall(text)]


def unquoted_windows(word: bytes) -> bytes:
    """Return what a word means."""
    if b'"' not in word:
        return word
    out, at, is_quoted = bytearray(), 0, False
    while at < len(word):
        end = at
        while word[end : end + 1] == b"\\":
            end += 1
        n, at = end - at, end
        is_quote = word[at : at + 1] == b'"'
        out += b"\\" * (n // 2 if is_quote else n)
        if is_quote and n % 2:
            out += b'"'
        elif is_quote and is_quoted and word[at + 1 : at + 2] == b'"':
            out += b'"'
            at += 1
        elif is_quote:
            is_quoted = not is_quoted
        else:
            out += word[at : at + 1]
        at += 1
    return bytes(out)


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


@dataclass(frozen=True, slots=True)
class Naming:
    """How the words of one program name response files; long options in any case.

    `separate` are options before the name of a file, `joined` those that it is a part of.
    """

    separate: frozenset[bytes] = frozenset()
    joined: tuple[bytes, ...] = (b"@",)

    @property
    def has_options(self) -> bool:
        """Whether there are names without `@`."""
        return bool(self.separate)

    def names(self, words: Sequence[bytes]) -> bool:
        """Return whether any of some words names a file."""
        if any(word.startswith(b"@") for word in words):
            return True
        return self.has_options and any(self.takes_next(w) or self.file_in(w) for w in words)

    def takes_next(self, word: bytes) -> bool:
        """Return whether the next word names a file."""
        return self.has_options and _folded(word) in self.separate

    def file_in(self, word: bytes) -> bytes | None:
        """Return the file that a word names, None when it names none."""
        for start in self.joined:
            if len(word) > len(start) and word[: len(start)].lower() == start:
                return word[len(start) :]
        return None

    def files(self, words: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the files that words name, in order."""
        rest = iter(words)
        for word in rest:
            name = next(rest, None) if self.takes_next(word) else self.file_in(word)
            if name is not None:
                yield name


def _folded(option: bytes) -> bytes:
    return option.lower() if len(option) > 2 else option


@lru_cache(1 << 12)
def naming_of(program: bytes) -> Naming:
    """Return how the words of a program name response files."""
    tool = tools.load().find_name(program)
    forms = {} if tool is None else tool.options.forms
    found = [split_form(text) for text, meaning in forms.items() if meaning == "response"]
    separate = (_folded(flag) for flag, form in found if form is Form.SEPARATE)
    joined = (flag.lower() for flag, form in found if form is Form.JOINED)
    return Naming(frozenset(separate), (b"@", *joined))


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
        """Replace each name of a file by the arguments in it, nested ones too.

        Relative names are to `cwd`; `upid` ran the command. The path of a file that cannot be read
        is listed, and its argument is left out unless `keeps_missing`. argv[0] stays.
        """
        if not argv or not naming_of(argv[0]).names(argv[1:]):
            return Expanded(tuple(argv))
        return self._expand(argv, os.fsencode(cwd), upid, keeps_missing)

    def text(self, argv: Sequence[bytes], cwd: bytes, upid: int = 0) -> bytes | None:
        """Return what all response files of a command line hold, None when none can be read.

        The contents are in order, a newline between them; in place of words that name a file
        is its content. Splitting the text gives the words that `expand` puts in.
        """
        if not argv or not naming_of(argv[0]).names(argv[1:]):
            return None
        inliner = _Inliner(self, argv[0], cwd, upid)
        named = naming_of(argv[0]).files(argv[1:])
        found = [text for text in map(inliner.text, named) if text is not None]
        return b"\n".join(found) if found else None

    def _expand(
        self, argv: Sequence[bytes], cwd: bytes, upid: int, keeps_missing: bool
    ) -> Expanded:
        out, missing, naming = list(argv[:1]), dict[bytes, None](), naming_of(argv[0])
        is_windows = self.style.is_windows and quotes_as_windows(argv[0])
        todo = [(argument, 0) for argument in reversed(argv[1:])]
        n_files, n_left = 0, MAX_COMMAND_BYTES
        while todo:
            argument, depth = todo.pop()
            named, name = [argument], naming.file_in(argument)
            if naming.takes_next(argument) and todo and todo[-1][1] == depth:
                name = todo.pop()[0]
                named.append(name)
            if name is None:
                out.append(argument)
                continue
            path = self.style.join(cwd, name)
            is_allowed = n_files < MAX_FILES and depth < MAX_DEPTH
            n_most = min(n_left, self._n_expanded_left)
            found = self._read(upid, path, n_most, is_windows) if is_allowed else None
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
        """Return whether a content is within the limit of all, which counts each one once."""
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
        self._naming = naming_of(program)
        self._is_windows = files.style.is_windows and quotes_as_windows(program)

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
        may_name = b"@" in text or self._naming.has_options
        return self._inlined(text, depth) if may_name else text

    def _inlined(self, text: bytes, depth: int) -> bytes:
        out, at = list[bytes](), 0
        words = (WINDOWS_WORD if self._is_windows else _WORD).finditer(text)
        for match in words:
            word, end = self._unquoted(match[0]), match.end()
            name = self._naming.file_in(word)
            if self._naming.takes_next(word) and (following := next(words, None)) is not None:
                name, end = self._unquoted(following[0]), following.end()
            found = None if name is None else self.text(name, depth + 1)
            if found is not None:
                out += (text[at : match.start()], found)
                at = end
        return b"".join((*out, text[at:]))

    def _unquoted(self, word: bytes) -> bytes:
        return unquoted_windows(word) if self._is_windows else _unquoted(word)
