# SPDX-License-Identifier: Apache-2.0
"""Command lines and variables -> the same without what looks like a secret.

A name decides (`--password X`, `-DAPI_TOKEN=X`), a URL with a user, or the form of a token that
its issuer documents (GitHub, GitLab, AWS, Slack, JSON Web Tokens). No rule finds every secret:
environments are written only when asked for, and command lines can be left out. Each pattern
begins where a word does or has limits, so that the time is linear in the length of a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

HIDDEN = "[hidden]"
_NAME = re.compile(
    r"pass(?:word|wd|phrase|code)|(?:^(?:-D)?|[_\W])(?:store|key)?pass(?:in|out)?(?:$|[_\W\d])|secret|token"
    r"|api[_-]?key|private[_-]?key"
    r"|(?:access|encryption|signing|auth|account|storage)[_-]?key|credential|(?:^|[_\W])auth(?:$|[_\W])"
    r"|(?:^|[_\W])(?:pw|pwd|pat)(?:$|[_\W])|bearer|session[_-]?id|cookie",
    re.IGNORECASE,
)
#: `NAME=value`, `-DNAME=value`, `--name=value`, `/p:Name=value`
_ASSIGNED = re.compile(r"(/?-{0,2}[\w.:-]+)(=)(.+)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w-]*")
_USER = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://)[^/\s?#]+@", re.IGNORECASE)
#: of a URL's query, and of JSON
_QUERY = re.compile(
    r"([?&][\w.-]{0,60}(?:token|key|secret|passw(?:or)?d|sig(?:nature)?)=)[^&\s#]+", re.IGNORECASE
)
_JSON = re.compile(
    r"""(["'][\w-]{0,60}(?:pass(?:w(?:or)?d|phrase)?|token|secret|key)["']\s{0,9}:\s{0,9}["'])[^"']+""",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|xox[abeprs]-[\w-]{10,}|sk-[\w-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{20,}"
    r"|eyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]*)|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_HEADER = re.compile(
    r"((?<![\w-])(?:authorization|cookie|[\w-]{0,60}(?:token|key))\s{0,9}:\s*).+", re.I | re.DOTALL
)
#: of curl and wget: the next word, or the rest of this one, is `user:password`
_USER_OPTIONS = frozenset(("-u", "--user", "--proxy-user", "-U"))
_ASKING = frozenset(("curl", "wget", "http", "https"))


def is_secret(name: str) -> bool:
    """Return whether what has this name looks like a secret."""
    return _NAME.search(name) is not None


def without_tokens(text: str) -> str:
    """Return a text without users and secrets in URLs, and without tokens."""
    for pattern, shown in (
        (_USER, rf"\1{HIDDEN}@"),
        (_QUERY, rf"\1{HIDDEN}"),
        (_JSON, rf"\1{HIDDEN}"),
    ):
        text = pattern.sub(shown, text)
    return _TOKEN.sub(HIDDEN, text)


def shown_arguments(words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command line without secrets.

    A word that is a text itself, as that of `sh -c`, is hidden whole when it holds one.
    """
    hides_next, asks = False, False
    for word in words:
        asks = asks or word.rpartition("/")[2] in _ASKING
        assigned = _ASSIGNED.fullmatch(word)
        is_option = _OPTION.fullmatch(word) is not None
        if hides_next:
            yield HIDDEN
            hides_next = False
            continue
        if asks and word.startswith("-u") and ":" in word:
            yield f"-u{HIDDEN}"
        elif len(inside := word.split()) > 1:
            yield word if _is_plain(word, inside) else HIDDEN
        elif assigned and is_secret(assigned[1]):
            yield f"{assigned[1]}={HIDDEN}"
        else:
            yield _HEADER.sub(rf"\1{HIDDEN}", without_tokens(word))
        is_user = word in _USER_OPTIONS and asks
        hides_next = is_option and (is_secret(word.lstrip("-")) or is_user)


def _is_plain(text: str, inside: list[str]) -> bool:
    words = [word.strip("\"'") for word in inside]
    is_shown = _HEADER.sub("", without_tokens(text)) == text
    return is_shown and list(shown_arguments(words)) == words


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
            yield name, HIDDEN if is_secret(name) else next(shown_arguments([value]))
