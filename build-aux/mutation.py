# SPDX-License-Identifier: Apache-2.0
"""Find a function of the tree by its name, and change a token of it.

A function is C, Cython or Python, `name` or `Class.name`; a table, a struct and an enum of C count
as functions. A name that several have needs the file or the end of its path:
`event/path.h::etrace_file_get`. A function begins with its signature, without decorators.

A change is a place and what it becomes. A place is a token or a few of them: `<`, `> 1`, `max(`.
Where the function has it more than once, the place is numbered: `2nd <`. What is in a comment or a
string is not found. What the place becomes is text, empty to drop the place, or

- never, always, inverted: the condition of an `if`, `elif`, `while` or `?`, the value of `return`
- left operand: what remains of `and`, `or`, `&&` or `||` and its two operands
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("cython", "native", "kmod", "etrace")
C, PYTHON = (".c", ".h"), (".pyx", ".py")

STRING = r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' """
WORD = r""" [^\W\d]\w* | \.?\d(?:[eEpP][-+]|[\w.])* """
OPERATOR = (
    r""" \.\.\. | <<= | >>= | -> | \+\+ | -- | && | \|\| | << | >> | [-+*/%&|^=!<>:]= | \S """
)
DIRECTIVE = r""" ^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])* """
CAST = r""" <[A-Za-z]\w*(?:[ ]\w+)*(?:[ ]?\*+)?> """  # of Cython
C_TOKEN = re.compile(
    rf"/\*.*?\*/ | //[^\n]* | (?P<token> {DIRECTIVE} | {STRING} | {WORD} | {OPERATOR})",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
PYTHON_TOKEN = re.compile(
    rf'\#[^\n]* | (?P<token> (?:\b[A-Za-z]{{1,2}})?(?:"""(?:\\.|.)*?""" | {STRING})'
    rf"| {CAST} | {WORD} | {OPERATOR})",
    re.DOTALL | re.VERBOSE,
)

PLACE = re.compile(r"(?:(\d+)(?:st|nd|rd|th) )?(.+)")
CONDITIONS = {"if", "elif", "while", "?", "return"}
VALUES = {"never": ("0", "False"), "always": ("1", "True"), "inverted": ("!({})", "not ({})")}
OR_ENDS = {"or", "||", "?", ":", ",", ";", "=", "if", "else", "for"}
AND_ENDS = OR_ENDS | {"and", "&&"}
RIGHT_ENDS = {"and": AND_ENDS, "&&": AND_ENDS, "or": OR_ENDS, "||": OR_ENDS}
LEFT_ENDS = {"?", ":", ",", ";", "=", "+=", "return"}  # of the condition before a `?`


class MutationError(Exception):
    """A fault does not fit the tree; the message names it and says what to do."""


class Token(NamedTuple):
    """A piece of source text; `begins` a logical line of Python, `column` is its indentation."""

    text: str
    start: int
    begins: bool
    column: int

    @property
    def end(self) -> int:
        """Where the token ends in the source."""
        return self.start + len(self.text)


class Function(NamedTuple):
    """Where a function is: its file, and from which character to which."""

    path: Path
    start: int
    end: int


def tokens_of(text: str, *, is_c: bool) -> list[Token]:
    """Split source text into tokens, without comments."""
    found: list[Token] = []
    depth = line = 0
    for match in (C_TOKEN if is_c else PYTHON_TOKEN).finditer(text):
        if (token := match["token"]) is None:
            continue
        start = match.start("token")
        begins = not is_c and depth == 0 and (not found or "\n" in text[found[-1].end : start])
        if begins:
            line = text.rfind("\n", 0, start) + 1
        found.append(Token(token, start, begins, start - line))
        depth += (token in {"(", "[", "{"}) - (token in {")", "]", "}"})
    return found


def next_end(tokens: Sequence[Token], at: int, ends: Container[str], step: int = 1) -> int:
    """Return the index of what ends an expression that `tokens[at]` begins, or ends for step -1."""
    opening, closing = ("([{", ")]}") if step > 0 else (")]}", "([{")
    depth = 0
    first = at
    while 0 <= at < len(tokens):
        text = tokens[at].text
        if depth == 0 and (text in ends or (tokens[at].begins and at != first)):
            break
        depth += (text in opening) - (text in closing)
        if depth < 0:
            break
        at += step
    return at


def c_functions(tokens: list[Token]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of what has braces outside of all others."""
    header: list[Token] = []  # what precedes the braces
    depth = 0
    branches: list[tuple[int, int, bool]] = []  # depth and header before #if; whether #else came
    for token in tokens:
        if token.text.lstrip().startswith("#"):
            word = token.text.lstrip("# \t")
            if word.startswith("if"):
                branches.append((depth, len(header), False))
            elif word.startswith("el") and branches:
                depth, n, _ = branches[-1]
                branches[-1] = depth, n, True
            elif word.startswith("endif") and branches:
                before, n, has_else = branches.pop()
                if not has_else:
                    depth, header = before, header[:n]
            continue
        depth -= token.text == "}"
        if depth == 0:
            if token.text == "}":
                for name in c_names(header):
                    yield name, header[0].start, token.end
            header = [] if token.text in {";", "}"} else [*header, token]
        depth += token.text == "{"


def c_names(header: list[Token]) -> set[str]:
    """Return the names before a parenthesis, attributes too, or else the last name."""
    called, names, depth = set(), [""], 0
    for token, after in pairwise(header):
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and (token.text[0].isalpha() or token.text[0] == "_"):
            names.append(token.text)
            if after.text == "(":
                called.add(token.text)
    return called or {names[-1]}


def python_functions(tokens: list[Token]) -> Iterator[tuple[str, int, int]]:
    """Yield (qualified name, start, end) of each class and function of Python or Cython."""
    scopes: list[tuple[int, str, int]] = []  # column, name, start
    first = [i for i, token in enumerate(tokens) if token.begins]
    for at, after in zip(first, [*first[1:], len(tokens)], strict=True):
        line = tokens[at:after]
        while scopes and scopes[-1][0] >= line[0].column:
            _, name, start = scopes.pop()
            yield ".".join([*(scope for _, scope, _ in scopes), name]), start, tokens[at - 1].end
        if defined := python_name(line):
            scopes.append((line[0].column, defined, line[0].start))
    while scopes:
        _, name, start = scopes.pop()
        yield ".".join([*(scope for _, scope, _ in scopes), name]), start, tokens[-1].end


def python_name(line: list[Token]) -> str | None:
    """Return the name of the class or function that a logical line defines."""
    words = [token.text for token in line]
    if words[0] not in {"def", "cdef", "cpdef", "class", "async"}:
        return None
    if "class" in words[:2]:
        return words[words.index("class") + 1]
    end = next_end(line, 0, {":", "="})
    is_definition = "(" in words[:end] and words[end : end + 1] == [":"]
    return words[words.index("(") - 1] if is_definition else None


class Sources:
    """The sources of a tree."""

    def __init__(self, top: Path) -> None:
        files = (path for folder in FOLDERS for path in sorted((top / folder).rglob("*.*")))
        self.texts = {
            path.relative_to(top): path.read_text() for path in files if path.suffix in C + PYTHON
        }

    def find(self, function: str) -> Function:
        """Return where a function is."""
        file, _, name = function.rpartition("::")
        found = [
            Function(path, start, end)
            for path, text in self.texts.items()
            if name.rpartition(".")[2] in text and f"/{path}".endswith(f"/{file}" if file else "")
            for qualified, start, end in functions_of(path, text)
            if f".{qualified}".endswith(f".{name}")
        ]
        if not found:
            raise MutationError(f"{function}: no such function: write its new name, or its file's")
        if len(found) > 1:
            files = ", ".join(str(each.path) for each in found)
            either = "" if "." in name else f" or Class.{name}"
            raise MutationError(f"{function}: in {files}: write FILE::{name}{either}")
        return found[0]

    def changed(self, function: str, place: str, becomes: str) -> tuple[Path, str]:
        """Return the file of a function, and the file's text with a change of the function."""
        path, start, end = self.find(function)
        text = self.texts[path]
        try:
            body = change(text[start:end], place, becomes, is_c=path.suffix in C)
        except MutationError as error:
            raise MutationError(f"{function} ({path}): {error}") from None
        return path, text[:start] + body + text[end:]


def functions_of(path: Path, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start, end) of each function of a file."""
    is_c = path.suffix in C
    tokens = tokens_of(text, is_c=is_c)
    return c_functions(tokens) if is_c else python_functions(tokens)


def change(text: str, place: str, becomes: str, *, is_c: bool) -> str:
    """Return the text of a function with a place of it changed."""
    tokens = tokens_of(text, is_c=is_c)
    match = PLACE.fullmatch(place)
    if match is None:
        raise MutationError("an empty place: write the token to change")
    number, what = match.groups()
    wanted = [token.text for token in tokens_of(what, is_c=is_c)]
    texts = [token.text for token in tokens]
    n = len(wanted)
    hits = [i for i in range(len(texts) - n + 1) if texts[i : i + n] == wanted]
    if number is None and len(hits) > 1:
        raise MutationError(f"it has {len(hits)} of {what!r}: write which, as in '2nd {what}'")
    if len(hits) < int(number or 1):
        raise MutationError(f"it has {len(hits)} of {what!r}: choose another place")
    at = hits[int(number or 1) - 1]
    start, end = tokens[at].start, tokens[at + n - 1].end
    if what in CONDITIONS and becomes in VALUES:
        start, end = condition(tokens, at, is_c=is_c)
        becomes = VALUES[becomes][not is_c].format(text[start:end])
    elif what in RIGHT_ENDS and becomes == "left operand":
        end = tokens[next_end(tokens, at + 1, RIGHT_ENDS[what]) - 1].end
        becomes = ""
        start = tokens[at - 1].end
    if text[start:end] == becomes:
        raise MutationError(f"{place!r} -> {becomes!r} changes nothing")
    return text[:start] + becomes + text[end:]


def condition(tokens: list[Token], at: int, *, is_c: bool) -> tuple[int, int]:
    """Return from where to where the condition of the keyword at an index is."""
    keyword = tokens[at].text
    if keyword == "?":
        first, end = next_end(tokens, at - 1, LEFT_ENDS, -1) + 1, at
    elif keyword == "return" or not is_c:
        ends = {";"} if keyword == "return" else {":"}
        first = at + 1
        end = next_end(tokens, first, ends if tokens[at].begins else ends | {"else", "for", "if"})
    else:  # in parentheses
        first = at + 2
        end = next_end(tokens, first, ())
    return tokens[first].start, tokens[end - 1].end
