# SPDX-License-Identifier: Apache-2.0
"""Text quoted as Windows quotes -> words; which tools of Windows quote so in response files.

The rules are those of Microsoft's C library (native/windows/text/command_line.h cites them), lines
are blanks. GNU's tools quote in the same way everywhere, LLVM's as the system does.
"""

from __future__ import annotations

import re

from etrace.spec.path_style import program_name

#: a word: backslashes before a quote are half as many, then the quote groups or stands for itself
WINDOWS_WORD = re.compile(
    rb"""(?> [^\s"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)*+
             "(?> [^"\\]++ | \\++(?!") | (?:\\\\)*+\\" | (?:\\\\)++(?=") | "" )*+ (?:"|\Z) )++""",
    re.VERBOSE,
)
_GNU = re.compile(rb"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|ar|ld|as)(?:-[\d.]+)?|tcc|collect2|cc1|cc1plus")
_LLVM = re.compile(rb"(?:llvm-|clang).*")


def quotes_as_windows(program: bytes) -> bool:
    """Tell whether a program of Windows cuts its response files as Windows does command lines."""
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
