# SPDX-License-Identifier: Apache-2.0
"""Runs of make and ninja in an image -> the rules that their makefiles declare now.

Make is asked by `make -pnk` with the words of the trace, in the sandbox (etrace/sandbox): it
changes nothing and executes nothing, so that neither recipes nor `$(shell)` run, whatever
makefiles do with SHELL. When more executions were refused than recipes ended for it, makefiles use
`$(shell)`. Then the rules may lack names, and are known only with `runs_shell`: commands run in the
same sandbox.
Words and directories are data of who wrote the trace: make runs only for a build that this user
captured here, or when the user trusts it (`etrace check --trust`).

Root reads no makefiles of others, and is never the user of make: that is who owns the tree.
Of ninja: rules/ninja_rules.py; it is not run.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.nfsdb.above import my_users
from etrace.nfsdb.environment import of_processes
from etrace.nfsdb.owned import check_owner, is_captured
from etrace.query.files import BITS, WRITE
from etrace.redaction.texts import HIDDEN
from etrace.rules import generated, make_database, ninja_rules
from etrace.rules.recipes import Recipes
from etrace.rules.rule import Rules
from etrace.sandbox import run as sandbox
from etrace.sandbox.programs import UntrustedError, opened, trusted_path
from etrace.sandbox.run import Allowed, Limits
from etrace.spec.builders import MAKE, NINJA, TOOLS
from etrace.spec.database import ACCESS, NONE, file_type

NAMES = tuple(os.fsdecode(name) for name, tool in TOOLS.items() if tool == MAKE)
REFUSED = ("its make is not run", "run etrace check as that user")
ROOT = 0
FOREIGN = "another user owns it, and root reads no makefiles of others"
PLAIN = "root's make reads only plain files that nobody else owns or may write"
#: in a make with Guile, whose programs no sandbox was made for
GUILE = (b"libguile-", b"scm_init_guile")
#: what make prints of a command that the sandbox did not let it execute (native/sandbox/filter.c)
_NOT_EXECUTED = re.compile(rb": Protocol error$", re.MULTILINE)
#: job server and -j; `--` begins variables
_JOBS = re.compile(rb"(?:-j\d*|--jobs(?:=\d*)?|--jobserver-\w+=\S*|--sync-\S*|-O\w*)")
_ENDED = re.compile(rb"^make(?:\[\d+\])?: \*\*\* \[[^\n]*\] Error 127$", re.MULTILINE)
_STOP = b"  Stop."
_CANNOT_WRITE = " *** open: "
#: a makefile that is a pipe
_STDIN = re.compile(
    rb"(?:-[a-zA-Z]*f|--(?:file|makefile)=)?(?:-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+)"
)
LIMITS = Limits(seconds=120, memory_bytes=8 << 30, output_bytes=256 << 20, processes=512)

UNKNOWN = "the variables that it was handed are not in the trace: etrace run keeps them"
TOO_LONG = "reading its rules takes too much of the build's time: etrace check does it"


@dataclass(slots=True)
class Asked:
    """The rules of makes by their execution, and why others are not known."""

    rules: dict[int, Rules] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Started:
    """A run of make; words are its arguments, and variables of the makes around it."""

    program: bytes
    words: tuple[bytes, ...]
    directory: Path
    environment: dict[bytes, bytes]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what distinguishes it from others."""
        return self.directory, self.words, tuple(sorted(_own_environment(self.environment).items()))


class _Makes:
    """How each make of an image was started."""

    def __init__(self, recipes: Recipes, *, runs_shell: bool, seconds: float) -> None:
        self.recipes, self.runs_shell = recipes, runs_shell
        self._end = time.monotonic() + seconds
        self._traced: dict[int, dict[bytes, bytes]] = {}
        for upid, own in of_processes(recipes.image).items():
            pairs = (variable.partition(b"=") for variable in own)
            self._traced[upid] = {name: value for name, _, value in pairs}
        self._started: dict[int, _Started | str] = {}

    def seconds_left(self) -> float:
        """Return how long makes may still be asked."""
        return self._end - time.monotonic()

    def started(self, row: int) -> _Started | str:
        """Return how a make was started, or why that is not known."""
        if row not in self._started:
            recipes = self.recipes
            environment = self._environment(row)
            traced = self._traced.get(recipes.image["executions"]["upid"][row])
            has_flags = traced is not None and not _is_hidden(traced.get(b"MAKEFLAGS", b""))
            words = [*_inherited(recipes, row, has_flags), *recipes.argv(row)[1:]]
            self._started[row] = environment if isinstance(environment, str) else _Started(
                recipes.image.path_string(recipes.image["executions"]["binary"][row]),
                tuple(words), Path(recipes.records.directory(row)), environment,
            )  # fmt: skip
        return self._started[row]

    def _environment(self, row: int) -> dict[bytes, bytes] | str:
        """Return the variables of a make: of the trace, or for a first make those of this process.

        Captures keep them. Imported logs may have none, and preload knows none of a static make.
        """
        recipes = self.recipes
        if known := self._traced.get(recipes.image["executions"]["upid"][row]):
            return known
        number = recipes.of_row[row]
        is_first = number == NONE or recipes.tool(recipes.recipes[number].make) == NINJA
        return dict(os.environb) if is_first else UNKNOWN

    def written(self, row: int) -> frozenset[str]:
        """Return the files that a make wrote itself."""
        opens, records = self.recipes.image["opens"], self.recipes.records
        span = self.recipes.image["executions"].span("opens.start", row)
        return frozenset(
            records.path(opens["path"][each])
            for each in span
            if BITS[opens["mode"][each] & ACCESS] & WRITE
            and S_ISREG(file_type(opens["mode"][each]))
        )

    def rules(self, started: _Started) -> Rules | str:
        """Return the rules of a make, or why they are not known."""
        printed = self.run(started, (b"-pnk",))
        if isinstance(printed, str) and _CANNOT_WRITE in printed:
            # $(file >NAME) in a recipe that is out of date: with -t no recipe is expanded
            printed = self.run(started, (b"-ptk",))
        if isinstance(printed, str):
            return printed
        text = printed.decode("utf-8", "surrogateescape")
        if (rules := make_database.read(text, started.directory)) is None:
            return "make prints no data base for it"
        generated.learn(rules)
        return rules

    def run(self, started: _Started, options: Sequence[bytes]) -> bytes | str:
        """Return what make prints with other options, or why it is not run."""
        if b"--" in started.words:
            return "its command has --"
        if not started.directory.is_dir():
            return f"{started.directory} is gone"
        if any(map(_STDIN.fullmatch, started.words)):
            return "it read a makefile from standard input, which nothing keeps"
        if (left := self.seconds_left()) <= 0:
            return TOO_LONG
        limits = replace(LIMITS, seconds=math.ceil(min(LIMITS.seconds, left)))
        refuse_foreign(started.directory)
        kept = [word for word in started.words if not _JOBS.fullmatch(word)]
        own = _own_environment(started.environment)
        try:
            path = trusted_path(started.program)
            if path.name not in NAMES:
                return f"{path} is not run: its name is neither {' nor '.join(NAMES)}"
            with opened(path) as it:
                if _has_guile(path):
                    return f"{path} is not run: it has Guile, and makefiles can be programs of it"
                words, allowed = [*options, *kept], Allowed(executes=self.runs_shell)
                done = sandbox.run(
                    it, words, started.directory, own, allowed=allowed, limits=limits
                )
        except UntrustedError as error:
            return f"not run: {error}"
        if done.denied and os.geteuid() == ROOT:
            return f"{done.denied[0]} is not read: {PLAIN}"
        if not self.runs_shell and _has_missed_a_shell(done.stderr):
            return "its makefiles call $(shell): --run-shell lets them"
        return _stopped(done.stderr) or done.stdout


def ask(
    recipes: Recipes,
    rows: Iterable[int] | None = None,
    *,
    runs_shell: bool = False,
    is_trusted: bool = False,
    seconds: float = math.inf,
) -> Asked:
    """Return the rules of each make and ninja, or of `rows`. EtraceError: nobody may ask here.

    `is_trusted`: make runs for a build that this user did not capture on this machine, too. All
    that is asked takes no longer than `seconds`; what is left then is unknown.
    """
    check_owner(recipes.image, REFUSED)
    asked, makes = Asked(), _Makes(recipes, runs_shell=runs_shell, seconds=seconds)
    known: dict[tuple[object, ...], Rules | str] = {}
    for row in recipes.of_make if rows is None else rows:
        if makes.seconds_left() <= 0:
            asked.unknown[row] = TOO_LONG
            continue
        if recipes.tool(row) == NINJA:
            _ask_ninja(recipes, row, asked, known)
            continue
        if not is_trusted:
            _refuse_strange(recipes.image)
            is_trusted = True
        started = makes.started(row)
        if isinstance(started, str):
            asked.unknown[row] = started
            continue
        if started.key not in known:
            known[started.key] = makes.rules(started)
        answer = known[started.key]
        if isinstance(answer, str):
            asked.unknown[row] = answer
            continue
        own_files = makes.written(row)
        asked.rules[row] = replace(answer, own_files=own_files) if own_files else answer
    return asked


def _ask_ninja(
    recipes: Recipes, row: int, asked: Asked, known: dict[tuple[object, ...], Rules | str]
) -> None:
    directory = Path(recipes.records.directory(row))
    at = ninja_rules.started(recipes.argv(row)[1:], directory)
    if at is None:
        asked.unknown[row] = "an option of it is not known"
        return
    if (at,) not in known:
        program = recipes.image.path_string(recipes.image["executions"]["binary"][row])
        refuse_foreign(at.directory)
        known[at,] = ninja_rules.ask(program, at)
    answer = known[at,]
    if isinstance(answer, str):
        asked.unknown[row] = answer
    else:
        asked.rules[row] = answer


def _is_hidden(value: bytes) -> bool:
    """Return whether the capture has hidden a secret in a value."""
    return HIDDEN.encode() in value


def _inherited(recipes: Recipes, row: int, has_flags: bool) -> list[bytes]:
    """Return the variables that the makes around this one were called with, outermost first."""
    words: list[bytes] = []
    if has_flags:
        return words  # MAKEFLAGS has them
    for number in recipes.chain(recipes.of_row[row]):
        if recipes.tool(recipes.recipes[number].make) == NINJA:
            break  # a make below it has nothing from the makes above it
        around = recipes.argv(recipes.recipes[number].make)[1:]
        words = [word for word in around if _is_variable(word)] + words
    return words


def _is_variable(word: bytes) -> bool:
    return b"=" in word and not word.startswith(b"-")


def _has_missed_a_shell(text: bytes) -> bool:
    """Whether more was not executed than the recipes that ended for it, so for a function."""
    return len(_NOT_EXECUTED.findall(text)) > len(_ENDED.findall(text))


def _stopped(text: bytes) -> str:
    """Return why make stopped; empty when it did not."""
    for line in text.splitlines():
        if line.endswith(_STOP) and b"*** " in line:
            return os.fsdecode(line.removesuffix(_STOP))
    return ""


def _own_environment(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the variables that make gets; the sandbox leaves out those that choose its code."""
    own = {
        name: value for name, value in environment.items()
        if name not in (b"MAKEFLAGS", b"MFLAGS", b"MAKE_RESTARTS", b"MAKE_TERMOUT", b"MAKE_TERMERR")
    }  # fmt: skip
    own[b"LC_ALL"] = b"C"
    own.setdefault(b"PATH", b"/usr/bin:/bin")
    flags = [w for w in environment.get(b"MAKEFLAGS", b"").split() if not _JOBS.fullmatch(w)]
    if flags and not any(map(_is_hidden, flags)):
        own[b"MAKEFLAGS"] = b" ".join(flags)
    return own


def _has_guile(path: Path) -> bool:
    data = path.read_bytes()
    return any(name in data for name in GUILE)


def _refuse_strange(image: Image) -> None:
    """Refuse to run make on the word of the trace of somebody else. EtraceError."""
    if not is_captured(image):
        raise EtraceError(
            f"{image.path}: no mark shows that you captured this build on this machine, "
            "so no make is run for it",
            "if you did: cas parse --force, where its trace is; if you trust whoever did: --trust, "
            "which lets make read the makefiles that the trace names, in a sandbox",
        )


def refuse_foreign(directory: Path) -> None:
    """Refuse as root to read makefiles in the directory of somebody else. EtraceError."""
    if os.geteuid() == ROOT and directory.is_dir() and directory.stat().st_uid not in my_users():
        raise EtraceError(f"{directory} is not read: {FOREIGN}", "run this as its owner")
