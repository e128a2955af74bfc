# SPDX-License-Identifier: Apache-2.0
"""`etrace/compilers/responses.toml` -> how each tool names, decodes and splits response files.

A form cuts a text into words with their places, so that a reader can put a file in the place of the
word that names it. Text that no form decodes stays unchanged: bytes of any encoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from etrace.compilers import tools
from etrace.compilers.invocation import named_tool
from etrace.compilers.options import Form as OptionForm
from etrace.compilers.options import split_form
from etrace.compilers.tools import Tool
from etrace.errors import SpecError
from etrace.spec.path_style import program_name

DEFAULT = "gnu"
#: on Windows the tools of GNU quote as everywhere else; all others as Windows does
ON_WINDOWS = {
    "gnu": "llvm-windows",
    "llvm": "llvm-windows",
    "arm": "arm-windows",
    "intel": "intel-windows",
}
_GNU = re.compile(rb"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|ar|ld|as)(?:-[\d.]+)?|tcc|collect2|cc1|cc1plus")
_LLVM = re.compile(rb"(?:llvm-|clang).*")


class Word(NamedTuple):
    """One word of a text: what it means, and its place."""

    text: bytes
    start: int
    end: int


# ---- quoting ----

#: a word: backslashes before a quote are half as many, then the quote groups or is literal
WINDOWS_WORD = re.compile(
    rb"""(?> [^\s"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)*+
             "(?> [^"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)++(?=") | "" )*+ (?:"|\Z) )++""",
    re.VERBOSE,
)
QUOTES = (b"'", b'"')
_GNU_WORD = re.compile(
    rb"""(?> [^\s'"\\]++ | \\(?:.|\Z) | '(?>[^'\\]++|\\.)*+(?:'|\\?\Z)
           | "(?>[^"\\]++|\\.)*+(?:"|\\?\Z) )++""",
    re.VERBOSE | re.DOTALL,
)
#: what a word holds beside plain text; a text may end inside of quotes or after a backslash
_GNU_QUOTING = re.compile(
    rb"""\\(.|\Z) | '((?>[^'\\]++|\\.)*+)(?:'|\\?\Z) | "((?>[^"\\]++|\\.)*+)(?:"|\\?\Z)""",
    re.VERBOSE | re.DOTALL,
)
#: as that, but single quotes are themselves
_DOUBLE_WORD = re.compile(
    rb"""(?> [^\s"\\]++ | \\(?:.|\Z) | "(?>[^"\\]++|\\.)*+(?:"|\\?\Z) )++""",
    re.VERBOSE | re.DOTALL,
)
_DOUBLE_QUOTING = re.compile(
    rb"""\\(.|\Z) | (?!)() | "((?>[^"\\]++|\\.)*+)(?:"|\\?\Z)""", re.VERBOSE | re.DOTALL
)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
#: a quote that is open at the end of its line ends there
_JAVA_WORD = re.compile(
    rb"""(?> [^ \t\f\r\n'"]++
           | '(?>[^'\\\r\n]++|\\(?:[\r\n][ \t\f\r\n]*+|[^\r\n]))*+(?:'|\\?\Z|(?=[\r\n]))
           | "(?>[^"\\\r\n]++|\\(?:[\r\n][ \t\f\r\n]*+|[^\r\n]))*+(?:"|\\?\Z|(?=[\r\n])) )++""",
    re.VERBOSE,
)
_JAVA_QUOTED = re.compile(
    rb"""'((?>[^'\\\r\n]++|\\(?:[\r\n][ \t\f\r\n]*+|[^\r\n]))*+)'?+
       | "((?>[^"\\\r\n]++|\\(?:[\r\n][ \t\f\r\n]*+|[^\r\n]))*+)"?+""",
    re.VERBOSE,
)
_JAVA_ESCAPE = re.compile(rb"\\(?:[\r\n][ \t\f\r\n]*|(.)|\Z)", re.DOTALL)
_JAVA_CONTROL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"f": b"\f"}
_LINE = re.compile(rb"[^\n]++|(?:(?<=\n)|\A)(?=\n)")
_FULL_LINE = re.compile(rb"[^\r\n]++")
_GO_ESCAPE = re.compile(rb"\\([\\n])")


def unquoted_gnu(word: bytes) -> bytes:
    """Return what a word means to libiberty and LLVM."""
    if b"\\" not in word:  # these two are nearly all
        n_quotes = word.count(b"'") + word.count(b'"')
        if n_quotes == 0:
            return word
        if n_quotes == 2 and word[:1] in QUOTES and word[:1] == word[-1:]:
            return word[1:-1]
    return _GNU_QUOTING.sub(_gnu_literal, word)


def _unquoted_double(word: bytes) -> bytes:
    return _DOUBLE_QUOTING.sub(_gnu_literal, word)


def _gnu_literal(match: re.Match[bytes]) -> bytes:
    escaped, single, double = match.groups()
    if escaped is not None:
        return bytes(escaped)
    return _ESCAPED.sub(rb"\1", single if single is not None else double)


def unquoted_windows(word: bytes) -> bytes:
    """Return what a word means to a program of Windows."""
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


def _unquoted_java(word: bytes) -> bytes:
    if b"'" not in word and b'"' not in word:
        return word
    return _JAVA_QUOTED.sub(_java_literal, word)


def _java_literal(match: re.Match[bytes]) -> bytes:
    inside = match[1] if match[1] is not None else match[2]
    return _JAVA_ESCAPE.sub(lambda it: _JAVA_CONTROL.get(it[1] or b"", it[1] or b""), inside)


def _unescaped_go(word: bytes) -> bytes:
    return _GO_ESCAPE.sub(lambda it: b"\n" if it[1] == b"n" else b"\\", word)


def _without_return(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


_QUOTING: dict[str, tuple[re.Pattern[bytes], Callable[[bytes], bytes]]] = {
    "gnu": (_GNU_WORD, unquoted_gnu),
    "double": (_DOUBLE_WORD, _unquoted_double),
    "windows": (WINDOWS_WORD, unquoted_windows),
    "java": (_JAVA_WORD, _unquoted_java),
    "lines": (_LINE, _without_return),
    "go": (_FULL_LINE, _unescaped_go),
}
#: from the beginning of a comment to its end
_COMMENT_END = {"/*": re.compile(rb"\*/|\Z")}
_LINE_END = re.compile(rb"[\r\n]|\Z")


# ---- forms ----


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One form; there is one object of each. The keys are those of responses.toml."""

    name: str
    quoting: str
    unicode: bool = False
    nested: bool = False
    doubled: bool = False
    comments: tuple[str, ...] = ()
    comments_at: str = "line"
    chosen: Mapping[str, str] | None = None

    def decode(self, text: bytes) -> bytes:
        """Return a content as the tool reads it, in UTF-8."""
        if not self.unicode:
            return text
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            try:
                return text.decode("utf-16").encode()
            except UnicodeError:  # the tool refuses it
                return text
        return text.removeprefix(codecs.BOM_UTF8)

    def split(self, text: bytes) -> list[bytes]:
        """Split a decoded content into arguments."""
        has_quotes = b"\\" in text or b"'" in text or b'"' in text
        if self.quoting == "gnu" and not (has_quotes or self.comments):
            return text.split()
        return [word.text for word in self.words(text)]

    def words(self, text: bytes) -> Iterator[Word]:
        """Yield the words of a decoded content with their places, without comments."""
        pattern, unquoted = _QUOTING[self.quoting]
        marks = tuple(mark.encode() for mark in self.comments)
        at = end = 0
        while (match := pattern.search(text, at)) is not None:
            start = match.start()
            mark = next((each for each in marks if text.startswith(each, start)), None)
            if mark is not None and (
                self.comments_at == "word" or end == 0 or b"\n" in text[end:start]
            ):
                over = _COMMENT_END.get(mark.decode(), _LINE_END).search(text, start)
                at = len(text) if over is None else over.end()
                end = max(at - 1, 0)  # the end of a line is before the next word
                continue
            yield Word(unquoted(match[0]), start, match.end())
            end = match.end()
            at = end + (self.quoting == "lines")  # a line's end belongs to it

    def with_options(self, words: Sequence[bytes]) -> Form:
        """Return the form that the last option for it chooses, else this one."""
        if not self.chosen:
            return self
        known = {option.encode(): name for option, name in self.chosen.items()}
        found = [known[word] for word in words if word in known]
        return forms()[found[-1]] if found else self


@cache
def forms() -> Mapping[str, Form]:
    """Return the forms by name. SpecError when the table is wrong."""
    return forms_of(tools.load().responses)


def forms_of(tables: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Form]:
    """Return the forms of the tables of responses.toml. SpecError."""
    found = {}
    for name, table in tables.items():
        raw = {**table, "comments": tuple(table.get("comments", ()))}
        try:
            found[name] = Form(name, **raw)
        except TypeError as error:
            raise SpecError(f"compilers: response.{name}: {error}") from error
        if found[name].quoting not in _QUOTING:
            raise SpecError(f"compilers: response.{name}: no such quoting: {found[name].quoting}")
    return found


def quotes_as_windows(program: bytes) -> bool:
    """Return whether a program of Windows cuts its response files as Windows does command lines."""
    name = program_name(program).rpartition(b"\\")[2].lower()
    return _LLVM.fullmatch(name) is not None or _GNU.fullmatch(name) is None


# ---- naming ----


@dataclass(frozen=True, slots=True)
class Naming:
    """How the words of one program name response files; long options in any case.

    `separate` are options before the name of a file, `joined` those that it is a part of.
    """

    form: Form
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
        if self.form.doubled and word.startswith(b"@@"):
            return None
        for start in self.joined:
            if len(word) > len(start) and word[: len(start)].lower() == start:
                return word[len(start) :]
        return None

    def meaning(self, word: bytes) -> bytes:
        """Return the argument that a word is which names no file."""
        return word[1:] if self.form.doubled and word.startswith(b"@@") else word

    def files(self, words: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the files that words name, in order."""
        rest = iter(words)
        for word in rest:
            name = next(rest, None) if self.takes_next(word) else self.file_in(word)
            if name is not None:
                yield name


def _folded(option: bytes) -> bytes:
    return option.lower() if len(option) > 2 else option


def naming_of(argv: Sequence[bytes], tool: Tool | None, *, is_windows: bool) -> Naming:
    """Return how the words of a command name response files, and the form of these.

    `tool` is what it runs, None when the name of the program says it.
    """
    if tool is None or tool.kind == "launcher":
        tool = named_tool(tools.load(), argv)
    naming = _naming(tool, is_windows and quotes_as_windows(argv[0]))
    form = naming.form.with_options(argv)
    return naming if form is naming.form else Naming(form, naming.separate, naming.joined)


@cache
def _naming(tool: Tool | None, is_windows: bool) -> Naming:
    name = DEFAULT if tool is None else tool.settings.get("response", DEFAULT)
    if name not in forms():
        raise SpecError(f"compilers: {tool and tool.name}: no such form of response files: {name}")
    form = forms()[ON_WINDOWS.get(name, name) if is_windows else name]
    options = {} if tool is None else tool.options.forms
    found = [split_form(text) for text, meaning in options.items() if meaning == "response"]
    separate = (_folded(flag) for flag, kind in found if kind is OptionForm.SEPARATE)
    joined = (flag.lower() for flag, kind in found if kind is OptionForm.JOINED)
    return Naming(form, frozenset(separate), (b"@", *joined))
