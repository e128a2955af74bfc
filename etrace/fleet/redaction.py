# SPDX-License-Identifier: Apache-2.0
"""Texts of a build -> the same without secrets, user names and the places of this machine.

Nothing enters a fleet before it went through here. In this order:

1. rules of the user (`--redact REGEX`) hide what they match;
2. the source root becomes `$ROOT` in texts, and is taken off paths;
3. directories of users (/home/NAME, /Users/NAME, /root, $HOME) become `~`;
4. secrets are hidden (etrace/redaction/): where they are, and their values wherever else the build
   has them;
5. names of the users who built are hidden as whole words.

No rule finds every secret. `--no-commands` leaves command lines out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from libetrace.image.file import Image

from etrace.errors import EtraceError, UsageError
from etrace.nfsdb.environment import all_variables
from etrace.redaction.build import Redaction, any_of
from etrace.redaction.commands import shown_arguments
from etrace.redaction.names import is_secret
from etrace.redaction.texts import HIDDEN
from etrace.texts import text_of

ROOT = "$ROOT"
HOME = "~"
USER = "[user]"
#: accounts that name no person
SHARED = frozenset((
    "root", "nobody", "build", "builder", "buildd", "builduser", "runner", "jenkins", "gitlab",
    "gitlab-runner", "ci", "user", "admin", "ubuntu", "debian", "docker", "vagrant", "worker",
))  # fmt: skip
USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
#: values that show who built, by variable of CI systems
PERSON_VARIABLES = (
    "GITLAB_USER_LOGIN", "GITLAB_USER_NAME", "GITLAB_USER_EMAIL", "GITHUB_ACTOR",
    "GITHUB_TRIGGERING_ACTOR", "BUILD_USER", "BUILD_USER_ID", "BUILD_USER_EMAIL",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL",
)  # fmt: skip
#: shorter values are words of the language
LEAST_NAME = 3
#: options of compilers that a path may follow at once
_GLUED = ("-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-isysroot", "-iprefix")
_BEFORE = "|".join(
    [
        "(?<![\\w.-])",
        "(?<=^-[A-Za-z])",
        "(?<=[\\s'\"]-[A-Za-z])",
        *(f"(?<={each})" for each in _GLUED),
    ]
)
_HOMES = re.compile(
    rf"(?:{_BEFORE})"
    r"(?:/(?:home|Users|export/home|var/home)/([^/\s:;,'\"=]+)|/root(?![\w.-]))"
)
#: of secrets and of users; a text is searched for all of them
MAX_HIDDEN = 2000


class Redactor:
    """Rewrites the texts of one build."""

    def __init__(
        self, image: Image, rules: Iterable[str] = (), users: Iterable[str] = (), owner: str = ""
    ) -> None:
        self._rules = [_rule(text) for text in rules]
        self._root = str(image.attributes.get("source_root", "")).rstrip("/")
        variables = list(_variables(image))
        self._homes = {
            value.rstrip("/") for name, value in variables
            if name == "HOME" and value.count("/") > 1
        }  # fmt: skip
        self._names = _people(image, [*variables, ("USER", owner)], self._root, users)
        self._redaction = Redaction(image)
        secrets = self._redaction.values
        for what, found in (("secrets", secrets), ("names of users", self._names)):
            if len(found) > MAX_HIDDEN:
                raise EtraceError(
                    f"{image.path}: the build shows {len(found)} {what}, more than {MAX_HIDDEN}",
                    "hide them in the build, or leave it out of the fleet",
                )
        below = [re.escape(self._root)] if self._root else []
        self._below_root = re.compile(f"(?:{below[0]})(?=/|$|[\\s:;,'\"])") if below else None
        homes = sorted(map(re.escape, self._homes), key=len, reverse=True)
        self._own_homes = re.compile(f"(?:{'|'.join(homes)})(?![\\w.-])") if homes else None
        names = any_of(self._names)
        word = rf"(?<![A-Za-z0-9])(?:{names.pattern})(?![A-Za-z0-9])" if names else ""
        self._people = re.compile(word) if word else None
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return any text without what must not leave this machine."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._rewritten(text)
        return found

    def _rewritten(self, text: str) -> str:
        for rule in self._rules:
            text = rule.sub(HIDDEN, text)
        if self._below_root is not None:
            text = self._below_root.sub(lambda _: ROOT, text)
        if self._own_homes is not None:
            text = self._own_homes.sub(HOME, text)
        text = _HOMES.sub(HOME, text)
        text = self.without_secrets(text)
        return self._people.sub(USER, text) if self._people is not None else text

    def without_secrets(self, text: str) -> str:
        """Return a text without secrets alone."""
        return self._redaction.text(text)

    def path(self, path: bytes) -> str:
        """Return a path: relative to the source root where it is below it; the root is `.`."""
        text = self.text(text_of(path))
        if text == ROOT:
            return "."
        return text.removeprefix(f"{ROOT}/")

    def words(self, argv: Sequence[bytes]) -> list[bytes]:
        """Return the words of a command line; names of steps are made of these."""
        return [os.fsencode(self.text(word)) for word in shown_arguments(map(os.fsdecode, argv))]

    def command(self, argv: Sequence[bytes]) -> str:
        """Return a command line, quoted as for a shell."""
        return shlex.join(text_of(word) for word in self.words(argv))

    def variables(self, texts: Iterable[str], globs: Iterable[str]) -> list[tuple[str, str]]:
        """Return (name, value) of the variables that were asked for, sorted."""
        found = self._redaction.variables(texts, globs)
        return [(name, self.text(value)) for name, value in found]

    def label(self, name: str, value: str) -> str:
        """Return the value of a label. UsageError when its name asks for a secret."""
        if is_secret(name):
            raise UsageError(f"--label {name}: a fleet holds no secrets", "give it another name")
        return self.text(value)


def _rule(text: str) -> re.Pattern[str]:
    try:
        rule = re.compile(text)
    except re.error as error:
        raise UsageError(f"--redact {text}: {error}", "give a regular expression") from error
    if rule.search("") is not None:
        raise UsageError(f"--redact {text}: it matches the empty text", "match what to hide")
    return rule


def _variables(image: Image) -> Iterator[tuple[str, str]]:
    for variable in all_variables(image):
        name, _, value = text_of(variable).partition("=")
        yield name, value


def _people(
    image: Image, variables: Iterable[tuple[str, str]], root: str, users: Iterable[str]
) -> set[str]:
    """Return the names of those who built, as far as the build shows them."""
    named = {value for name, value in variables if name in USER_VARIABLES + PERSON_VARIABLES}
    named.update(value for value in (match[1] for match in _HOMES.finditer(root)) if value)
    for row in range(image["paths"].n_rows):
        path = image.path_string(row)
        if path.startswith((b"/home/", b"/Users/", b"/export/home/", b"/var/home/")):
            found = _HOMES.match(text_of(path))
            if found and found[1]:
                named.add(found[1])
    named = {name for name in named if len(name) >= LEAST_NAME and name.lower() not in SHARED}
    return named | {user for user in users if user}


def user_of(path: Path) -> str:
    """Return the name of the owner of a file, empty when it has no account."""
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwuid(path.stat().st_uid).pw_name
    except (KeyError, OSError):
        return ""
