# SPDX-License-Identifier: Apache-2.0
"""Names of variables, options, fields and headers -> whether their values are secrets.

A name is read as words: `dbPassword`, `DB_PASSWORD`, `db.password`. A strong noun makes a secret
wherever it is (`TOKEN_FOR_CI`) unless the last word says that the value is about the secret
(`token-file`, `PASSWORD_LENGTH`) or the first that it is a switch (`enable-token`). A weak noun,
which has other meanings too, must be the last word (`pgp-pass`; not `pass-through`).
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

#: characters of a name that are looked at, from its end
MAX_NAME = 120


def _lists() -> dict[str, frozenset[str]]:
    text = files("etrace.redaction").joinpath("names.toml").read_text(encoding="utf-8")
    return {name: frozenset(words.split()) for name, words in tomllib.loads(text).items()}


#: lists of words by their names (names.toml)
LISTS = _lists()
STRONG, WEAK, ABOUT = LISTS["strong"], LISTS["weak"], LISTS["about"]
STRONG_ENDS = tuple(LISTS["strong_ends"])
WEAK_END = re.compile(
    "".join(f"(?<!{word})" for word in sorted(LISTS["no_weak_ends"]))
    + f"(?:{'|'.join(LISTS['weak_ends'])})$|(?:{'|'.join(LISTS['weak_pw_ends'])})$"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=1 << 16)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in small letters, without numbers at its end."""
    found = [word.lower() for word in _WORDS.findall(name[-MAX_NAME:])]
    while len(found) > 1 and (found[-1].isdigit() or found[-1] in LISTS["tails"]):
        found.pop()
    return tuple(found)


def _is_strong(word: str) -> bool:
    return word in STRONG or word.endswith(STRONG_ENDS)


@lru_cache(maxsize=1 << 16)
def is_secret(name: str) -> bool:
    """Return whether the value of what has this name is a secret, unless it looks harmless."""
    words = words_of(name)
    if not words or name.strip("-").lower() in LISTS["plain"]:
        return False
    if words[0] in LISTS["switches"] and len(words) > 1:
        return False
    last = words[-1]
    if last in ABOUT:
        return False
    if is_strong(name):
        return True
    if last in WEAK or WEAK_END.search(last) is not None:
        return True
    return "key" in words and _key_is_secret(words)


def is_strong(name: str) -> bool:
    """Return whether a name has a noun that means a secret and nothing else."""
    words = words_of(name)
    return any(map(_is_strong, words)) or _is_joined(words)


def _is_joined(words: tuple[str, ...]) -> bool:
    """Whether words together are a strong noun: pass_word, pass-phrase, session-id."""
    return any(a + b in STRONG for a, b in pairwise(words))


def _key_is_secret(words: tuple[str, ...]) -> bool:
    at = len(words) - 1 - words[::-1].index("key")
    tail = words[at + 1 :]
    return at > 0 and words[at - 1] in LISTS["keys"] and LISTS["key_tails"].issuperset(tail)


@lru_cache(maxsize=1 << 14)
def is_key(name: str) -> bool:
    """Return whether the name is that of a key, which may be secret: its value decides."""
    words = words_of(name)
    return (
        len(words) > 1
        and words[-1] in ("key", "keys")
        and not LISTS["open_keys"].intersection(words[:-1])
    )


#: values that keep no secret: `--token=yes`, `PASS=0`
_TRIVIAL = re.compile(
    rf"(?i)(?:\d{{0,3}}|{'|'.join(LISTS['trivial'])}|-|\.|[^A-Za-z0-9]+|x{{3,}}|<[\w -]+>|\.\.\.)"
)
#: a value that comes from elsewhere: $NAME, ${NAME}, $(..), %NAME%, @NAME@, {{..}}, env:NAME
_REFERENCE = re.compile(
    r"\\?\$\$?(?:[A-Za-z_]\w*|\{[^{}]*\}|\([^()]*\)?)|\$\(.*|`.*|%[A-Za-z_]\w*%|@[A-Za-z_]\w*@"
    r"|\{\{.*|%[sdq]|(?:env|file|fd):\S+|stdin",
    re.DOTALL,
)
_PATH = re.compile(
    r"(?:/|\.{1,2}/|~/|\$\{?\w+\}?/)[\w./+@~-]*|[\w.-]*\.(?:pem|key|json|asc|gpg|pub|crt|cer|p12|pfx|jks"
    r"|keystore|der|txt|ya?ml)",
    re.ASCII,
)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+/=.~-]{16,}", re.ASCII)


def is_harmless(value: str) -> bool:
    """Return whether nobody keeps a value secret: a switch, or a reference to another value."""
    text = value.strip("\"'")
    return _TRIVIAL.fullmatch(text) is not None or _REFERENCE.fullmatch(text) is not None


def keeps(name: str, value: str) -> bool:
    """Return whether `name=value` has a secret for its value."""
    if is_secret(name):
        if is_harmless(value):
            return False
        last = words_of(name)[-1]
        is_file = last.endswith("pwd") or last in LISTS["files"]
        return not (is_file and _PATH.fullmatch(value.strip("\"'")) and value[-1:] not in "=")
    return is_key(name) and _RANDOM.fullmatch(value.strip("\"'")) is not None
