# SPDX-License-Identifier: Apache-2.0
"""A command line -> where its words have secrets.

A word shows a secret by itself (texts.py), or the words before it say that it is one: an option
with the name of a secret, or a program of tools.toml. A word with blanks may be a script, as that
of `sh -c`: its words are looked at in the same way.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from etrace.redaction.names import is_harmless, is_key, is_secret, is_strong, keeps
from etrace.redaction.texts import (
    HIDDEN,
    Span,
    hidden,
    is_opaque,
    merged,
    parts_of,
    spans_of,
    without_secrets,
)

#: scripts in scripts
MAX_DEPTH = 3
#: a shorter word of a here-string may be a word of a language
LEAST_OPAQUE = 10
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w.-]*|/[A-Za-z]{2,}|:[a-z][\w-]*")
_BLANK_VALUE = re.compile(r"-{0,2}[\w.-]{1,80}=")
#: words of a script, and what separates its commands
_TOKEN = re.compile(
    r"(?:[^\s\"'\\;|&()`]|\\.|'[^']*+'|\"(?:[^\"\\]|\\.)*+\"|[\"'\\])++|[;|&()`\n]+", re.DOTALL
)
#: an unnamed key: digests have small letters only
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[\w+=-]{16,}")
_BEFORE_SECRETS = frozenset(("bearer", "authorization:", "proxy-authorization:", "private-token:"))
_SEPARATOR = re.compile(r"[;|&()`\n]+")
_SHELL = re.compile(r"(?:ba|da|k|z|mk|a|c|tc|fi)?sh|busybox|su|runuser|cmd|env|ssh")
_OF_SHELL = re.compile(r"-\w{0,8}c|-S|--command|/c")
_SETS = frozenset(
    (
        "set",
        "config",
        "configure",
        "config:set",
        "put",
        "add",
        "setx",
        "export",
        "--arg",
        "--argstr",
        "--set",
        "setenv",
        "set_network",
        "write",
    )
)
#: options of Windows whose value is the next word: others are paths
_SLASHED = frozenset(("password", "passwd", "pass", "pwd", "pw", "apikey", "token"))
#: options whose value may be `user:password`, in any program
_USER_OPTION = re.compile(r"-u|-U|--[\w-]{0,30}(?:user|login|auth|username|basic)")
_USER_AND_SECRET = re.compile(r"[A-Za-z_][\w.@-]{0,60}:([^/\s:]{6,})")
#: what is after `-p` of a program that was given a user
_PASSWORD = re.compile(r"(?![\d:/.-]+(?:tcp|udp)?$)[^/.\s]{6,}")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*$")
#: what reads a secret from standard input
_STDIN = re.compile(
    r"--?\w*(?:password|passphrase|token|secret)\w*-stdin|--?stdin(?:-password)?"
    r"|--?pass(?:word|phrase)?-fd[ =]\d"
    r"|(?<![/.\w-])(?:ch|smb|vnc|ldap|slap|k?mk|tiger|mosquitto_|openssl )?passwd\b"
    r"|\bsudo\s+(?:-\w+\s+)?-\w{0,4}S\b|--with-token|-pass(?:in|out)?\s+stdin|--key-file[ =]-"
    r"|--?pass\w*-(?:on|from)-stdin|\bpassword_stdin\b|\bsecrets?\s+(?:create|set|put|add|import)\b"
    r"|\bpass\s+insert\b|\bsecret-tool\s+store\b|\bop\s+signin\b|\benv\s+add\b|--auth-user-pass\b"
    r"|\bprivate-key\s|\bopenssl\s+passwd\b|\bread\s[^;|\n]{0,40}(?i:pw|pass|token|secret)"
    r"|\blogin\b[^;|\n]{0,80}\s-(?:\s|$)|\blogin\s*$|\bkinit\b|\bcryptsetup\b"
)
_ECHO = frozenset(("echo", "printf", "print", "yes"))
#: a format of printf whose argument is a secret
_FORMAT = re.compile(
    r"(?i)(?:pass\w{0,12}|token|secret|key|bearer|basic)[\"'\\]{0,2}\s?[=: ]\s?[\"'\\]{0,2}%s"
)
#: what makes an Authorization of `user:password`, or the data of a secret of Kubernetes
_ENCODES = re.compile(
    r"\|\s{0,9}(?:openssl\s{1,4}(?:enc\s{1,4}-)?)?base64\b(?!\s{1,4}(?:-d|-D|--decode))"
)
_HEREDOC = re.compile(r"<<-?\s{0,3}[\"']?(\w{1,40})[\"']?[^\n]{0,200}\n")
_HERE_STRING = re.compile(r"<<<\s{0,3}(\"[^\"]*\"|'[^']*'|\S+)")


@dataclass(slots=True)
class Tool:
    """What the arguments of a program are, by tools.toml."""

    needs: frozenset[str] = frozenset()
    next: frozenset[str] = frozenset()
    glued: tuple[str, ...] = ()
    after: Mapping[str, Sequence[int]] = field(default_factory=dict)
    cluster: str = ""
    has_oracle: bool = False
    has_percent: bool = False
    has_basic: bool = False
    is_last: bool = False
    has_pairs: bool = False
    names: tuple[str, ...] = ()


@cache
def _tools() -> Mapping[str, tuple[Tool, ...]]:
    """Return the tools by the names of their programs."""
    found: defaultdict[str, list[Tool]] = defaultdict(list)
    text = files("etrace.redaction").joinpath("tools.toml").read_text(encoding="utf-8")
    for row in tomllib.loads(text)["tool"]:
        tool = Tool(
            frozenset(row.get("with", ())), frozenset(row.get("next", ())),
            tuple(row.get("glued", ())), row.get("after", {}), row.get("cluster", ""),
            row.get("oracle", False), row.get("percent", False), row.get("basic", False),
            row.get("last", False), row.get("pairs", False), tuple(row.get("names", ())),
        )  # fmt: skip
        for program in row["programs"]:
            found[program].append(tool)
    return {name: tuple(tools) for name, tools in found.items()}


@lru_cache(maxsize=1 << 16)
def _tools_of(word: str) -> tuple[Tool, ...]:
    name = word.rpartition("/")[2].removesuffix(".exe")
    return _tools().get(name, ())


def spans_of_command(words: Sequence[str], depth: int = 0) -> list[list[Span]]:
    """Return for each word where it has secrets, in order."""
    if not depth and all(map(_is_quiet, words)):
        return [[] for _ in words]
    return _spans_of_loud(words, depth)


@lru_cache(maxsize=1 << 17)
def _is_quiet(word: str) -> bool:
    """Return whether a word has no secret and says nothing of other words, as most do."""
    name = word.lstrip("-/:")
    return not (
        _tools_of(word)
        or word in _SETS
        or _is_shell(word)
        or word.lower() in _BEFORE_SECRETS
        or _USER_OPTION.fullmatch(word)
        or (_OPTION.fullmatch(word) and (name == "key" or is_secret(name) or is_key(name)))
        or any(_spans_of_loud([word], 0))
    )


def _is_shell(word: str) -> bool:
    return len(word) < 64 and _SHELL.fullmatch(word.rpartition("/")[2]) is not None


def _spans_of_loud(words: Sequence[str], depth: int) -> list[list[Span]]:
    found: list[list[Span]] = [[] for _ in words]
    tools: dict[int, tuple[int, Tool]] = {}  # the first time that each is on the line
    is_set, shell = False, False
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        if at and _hides_next(before, word, is_set=is_set, is_first=depth > 0 and at == 1):
            found[at].append(_whole(word))
        is_script = shell and _OF_SHELL.fullmatch(before) is not None
        found[at] += spans_of(word, to_end=depth == 0, is_script=is_script)
        if depth < MAX_DEPTH and (is_script or _has_blank(word)):
            found[at] += _spans_of_script(word, depth)
            if match := _BLANK_VALUE.match(word):
                inner = _spans_of_script(word[match.end() :], depth)
                found[at] += [(match.end() + a, match.end() + b) for a, b in inner]
        elif depth < MAX_DEPTH and len(word) > 2 and word[0] in "\"'" and word[-1] == word[0]:
            found[at] += _spans_of_script(word, depth)
        for tool in _tools_of(word):
            tools.setdefault(id(tool), (at, tool))
        is_set = is_set or word in _SETS
        shell = shell or _is_shell(word)
    _add_users(words, found)
    for at, tool in tools.values():
        if not tool.needs or not tool.needs.isdisjoint(words[at:]):
            _add_of_tool(tool, words, at, found)
    return [merged(spans) for spans in found]


def _add_users(words: Sequence[str], found: list[list[Span]]) -> None:
    """Add the passwords beside users: `-u me:X`, `-u me .. -p X`."""
    has_user = False
    for at, (before, word) in enumerate(pairwise(words), start=1):
        if _USER_OPTION.fullmatch(before):
            has_user = has_user or not word.startswith("-")
            match = _USER_AND_SECRET.fullmatch(word)
            if match and is_opaque(match[1]) and not match[1].isdigit():
                found[at].append(match.span(1))
        elif has_user and before == "-p" and _PASSWORD.fullmatch(word) and is_opaque(word):
            found[at].append(_whole(word))


def _whole(word: str) -> Span:
    return 0, len(word)


def _has_blank(word: str) -> bool:
    return " " in word or "\n" in word or "\t" in word


def _hides_next(before: str, word: str, *, is_set: bool, is_first: bool) -> bool:
    """Whether a word is a secret by the one before it."""
    if not before or len(before) > 120 or is_harmless(word):
        return False
    if before.lower() in _BEFORE_SECRETS:
        return before[-1] != ":" or word.lower() not in ("bearer", "basic", "token", "digest")
    if _OPTION.fullmatch(before):
        name = before.lstrip("-/")
        if name == "key":
            return _MIXED.fullmatch(word) is not None
        if before[0] == "/" and name.lower() not in _SLASHED:
            return False
        if not keeps(name, word) or word.startswith(("id=", "type=", "name=")):
            return False
        return not word.startswith("--") or is_strong(name)
    if is_set and (match := _NAME.search(before)) and "=" not in word.rstrip("="):
        return keeps(match[0], word) and not word.startswith("-")
    return "_" in before and is_first and before.isidentifier() and keeps(before, word)


def _add_of_tool(tool: Tool, words: Sequence[str], at: int, found: list[list[Span]]) -> None:
    """Add the secrets in the arguments of a program that is the word `at`."""
    operands = [i for i in range(at + 1, len(words)) if not words[i].startswith("-")]
    for i in range(at + 1, len(words)):
        word = words[i]
        if word in tool.next and i + 1 < len(words):
            if not is_harmless(words[i + 1]):
                found[i + 1].append(_secret_part(tool, words[i + 1]))
        elif tool.cluster and re.fullmatch(rf"-[A-Za-z]{{1,8}}{tool.cluster}", word):
            if i + 1 < len(words):
                found[i + 1].append(_whole(words[i + 1]))
        elif tool.cluster and (
            match := re.fullmatch(rf"-[A-Za-z]{{1,8}}?{tool.cluster}([^\s:/]+:.+)", word)
        ):
            found[i].append(match.span(1))
        elif word.startswith(tool.glued) and not word.startswith("--"):
            option = next(each for each in tool.glued if word.startswith(each))
            begin = len(option) + (word[len(option) : len(option) + 1] == "=")
            value = word[begin:]
            if len(value) > 1 and not is_harmless(value) and (value[0] != "-"):
                found[i].append((begin, len(word)))
        else:
            head, sign, value = word.partition("=")
            is_named = head in tool.next or head in tool.names or head[2:] in tool.names
            if sign and is_named and not is_harmless(value):
                found[i].append((len(head) + 1, len(word)))
    for name, numbers in tool.after.items():
        if name and name not in words[at:]:
            continue
        start = at if not name else words.index(name, at)
        later = [i for i in range(start + 1, len(words)) if not words[i].startswith("-")]
        for number in numbers:
            for i in later[number - 1 : number + 1]:
                if not is_harmless(words[i]):
                    found[i].append(_whole(words[i]))
                if i - 1 == start or words[i - 1][:2] != "--" or "=" in words[i - 1]:
                    break  # else it may be the value of an option: `login --registry r X`
    if tool.has_pairs:
        for i in operands:
            name, _, value = words[i].partition("=")
            if value and value[0] not in "@-" and not is_harmless(value):
                found[i].append((len(name) + 1, len(words[i])))
    if tool.has_oracle:
        for i in operands:
            if match := re.fullmatch(
                r"(?:userid=)?[\w$#]{1,64}/(\"[^\"]+\"|[^@\s]+)(?:@.*)?", words[i]
            ):
                found[i].append(match.span(1))
    if tool.has_basic:
        _add_of_config(
            [i for i in operands if i > words.index("config")] if "config" in words else [],
            words,
            found,
        )
    if tool.is_last and len(operands) > 1:
        found[operands[-1]].append(_whole(words[operands[-1]]))


def _add_of_config(rest: Sequence[int], words: Sequence[str], found: list[list[Span]]) -> None:
    """Add secrets of `composer config http-basic.h u p` and `bundle config h u:p`."""
    for place, i in enumerate(rest):
        n = 2 if "http-basic" in words[i] else 1 if re.search("oauth|token|bearer", words[i]) else 0
        if n and place + n < len(rest):
            found[rest[place + n]].append(_whole(words[rest[place + n]]))
        elif match := re.fullmatch(r"[\w.@+-]+:([^/:\s]{6,})", words[i]):
            found[i].append(match.span(1))


def _secret_part(tool: Tool, word: str) -> Span:
    if tool.has_percent:
        begin = word.find("%") + 1
        return (begin, len(word)) if begin else (0, 0)
    if word.startswith(("/", "./", "file:", "env:", "fd:")) and "=" not in word[-1:]:
        return 0, 0
    return _whole(word)


# ---- scripts ----


def _spans_of_script(text: str, depth: int) -> Iterator[Span]:
    """Yield where a script has secrets, by the words of its commands."""
    base = 0
    if len(text) > 2 and text[0] in "\"'" and text[-1] == text[0]:
        base, text = 1, text[1:-1]
    words: list[str] = []
    places: list[int] = []
    reads_stdin = _STDIN.search(text) is not None
    for token in _TOKEN.finditer(text):
        if _SEPARATOR.fullmatch(token[0]):
            yield from _spans_of_words(words, places, base, depth)
            encodes = _ENCODES.match(text, token.start()) is not None
            yield from _echoed(words, places, base, reads_stdin=reads_stdin, encodes=encodes)
            words, places = [], []
        else:
            words.append(token[0])
            places.append(token.start())
    yield from _spans_of_words(words, places, base, depth)
    yield from _echoed(words, places, base, reads_stdin=reads_stdin, encodes=False)
    if "<<<" in text:
        for match in _HERE_STRING.finditer(text):
            value = match[1].strip("\"'")
            if reads_stdin or (
                len(value) >= LEAST_OPAQUE and " " not in value and is_opaque(value)
            ):
                yield base + match.start(1), base + match.end(1)
    if "<<" in text:
        for begin, end in _heredocs(text):
            spans = [(0, end - begin)] if reads_stdin else spans_of(text[begin:end])
            yield from ((base + begin + a, base + begin + b) for a, b in spans)


def _heredocs(text: str) -> Iterator[Span]:
    at = 0
    while match := _HEREDOC.search(text, at):
        end = text.find(f"\n{match[1]}", match.end() - 1)
        at = len(text) if end < 0 else end
        yield match.end(), at


def _spans_of_words(
    words: Sequence[str], places: Sequence[int], base: int, depth: int
) -> Iterator[Span]:
    bare = [_unquoted(word) for word in words]
    for (shift, _), place, spans in zip(
        bare, places, spans_of_command([each for _, each in bare], depth + 1), strict=True
    ):
        for begin, end in spans:
            yield base + place + shift + begin, base + place + shift + end


def _echoed(
    words: Sequence[str], places: Sequence[int], base: int, *, reads_stdin: bool, encodes: bool
) -> Iterator[Span]:
    """Yield what `echo` and its like give a program that reads a secret, or encodes `user:X`."""
    if not words or words[0] not in _ECHO:
        return
    has_user = False
    is_format = words[0] == "printf" and any(map(_FORMAT.search, words[1:3]))
    if not (reads_stdin or encodes or is_format):
        return
    for word, place in zip(words[1:], places[1:], strict=True):
        shift, bare = _unquoted(word)
        begin = base + place + shift
        if re.match(r"[\w%.@-]{1,60}:%s", bare):
            has_user = True
        elif bare.startswith("-") or is_harmless(bare) or bare in (r"%s\n", "%s"):
            continue
        elif reads_stdin or (is_format and is_opaque(bare) and "%" not in bare):
            yield begin, begin + len(bare)
        elif not encodes:
            continue
        elif match := _USER_AND_SECRET.fullmatch(bare):
            yield begin + match.start(1), begin + len(bare)
        elif has_user or (" " not in bare and is_opaque(bare)):
            yield begin, begin + len(bare)


def _unquoted(word: str) -> tuple[int, str]:
    """Return how much of a word's begin is a quote, and the word without its quotes."""
    if len(word) > 1 and word[0] in "\"'" and word[-1] == word[0]:
        return 1, word[1:-1]
    return 0, word


# ---- what others ask for ----


def shown_arguments(words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command line without secrets."""
    known = list(words)
    for word, spans in zip(known, spans_of_command(known), strict=True):
        yield hidden(word, spans) if spans else word


def secret_values(words: Sequence[str]) -> Iterator[str]:
    """Yield the values that the rules hide in a command line, and parts that may be elsewhere."""
    for word, spans in zip(words, spans_of_command(words), strict=True):
        for begin, end in spans:
            yield from parts_of(word[begin:end])


def shown_variables(variables: Iterable[str], globs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the variables that were asked for, sorted.

    A name that looks like a secret keeps its value only when it was asked for in full.
    """
    wanted = tuple(globs)
    for variable in sorted(set(variables)):
        name, _, value = variable.partition("=")
        if name in wanted:
            yield name, value
        elif any(fnmatchcase(name, glob) for glob in wanted):
            yield name, shown_value(name, value)


def shown_value(name: str, value: str) -> str:
    """Return the value of a variable without secrets."""
    if is_secret(name) or keeps(name, value):
        return HIDDEN if value else value
    return without_secrets(value)


def without_secret(variable: bytes) -> bytes:
    """Return `NAME=value`, with HIDDEN for its value if that is a secret or has one."""
    name, sign, value = os.fsdecode(variable).partition("=")
    has_secret = keeps(name, value) or without_secrets(value) != value
    return os.fsencode(name + sign + HIDDEN) if has_secret and value else variable
