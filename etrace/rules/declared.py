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

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.nfsdb.above import my_users
from etrace.nfsdb.environment import of_processes
from etrace.nfsdb.owned import check_owner, is_captured
from etrace.rules import generated, make_database, ninja_rules
from etrace.rules.recipes import NINJA, Recipes
from etrace.rules.rule import Rules
from etrace.sandbox.programs import UntrustedError, opened, trusted_path
from etrace.sandbox.run import Allowed, Limits, run

REFUSED = ("its make is not run", "run etrace check as that user")
NAMES = ("make", "gmake")
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
STDIN = {b"-", b"-f-", b"--file=-", b"--makefile=-", b"/dev/stdin", b"-f/dev/stdin"}
LIMITS = Limits(seconds=120, memory_bytes=8 << 30, output_bytes=256 << 20, processes=512)


@dataclass(slots=True)
class Asked:
    """The rules of makes by their execution, and why others are not known."""

    rules: dict[int, Rules] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)


def _environments(image: Image) -> Mapping[int, dict[bytes, bytes]]:
    found: dict[int, dict[bytes, bytes]] = {}
    for upid, own in of_processes(image).items():
        pairs = (variable.partition(b"=") for variable in own)
        found[upid] = {name: value for name, _, value in pairs}
    return found


def ask(recipes: Recipes, *, runs_shell: bool = False, is_trusted: bool = False) -> Asked:
    """Return the rules of each make and ninja. EtraceError when nobody may ask here.

    `is_trusted`: make runs for a build that this user did not capture on this machine, too.
    """
    check_owner(recipes.image, REFUSED)
    asked, environments = Asked(), _environments(recipes.image)
    known: dict[tuple[object, ...], Rules | str] = {}
    for row in recipes.makes:
        if recipes.tool(row) == NINJA:
            _ask_ninja(recipes, row, asked, known)
            continue
        if not is_trusted:
            _refuse_strange(recipes.image)
            is_trusted = True
        upid = recipes.image["executions"]["upid"][row]
        words = [*_inherited(recipes, row, upid in environments), *recipes.argv(row)[1:]]
        environment = environments.get(upid) or dict(os.environb)
        directory = Path(recipes.records.directory(row))
        key = (directory, tuple(words), tuple(sorted(environment.items())))
        if key not in known:
            program = recipes.image.path_string(recipes.image["executions"]["binary"][row])
            known[key] = _ask_one(program, words, directory, environment, runs_shell=runs_shell)
        answer = known[key]
        if isinstance(answer, str):
            asked.unknown[row] = answer
        else:
            asked.rules[row] = answer
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


def _inherited(recipes: Recipes, row: int, is_environment_known: bool) -> list[bytes]:
    """Return the variables that the makes around this one were called with, outermost first."""
    words: list[bytes] = []
    if is_environment_known:
        return words  # MAKEFLAGS has them
    for number in recipes.chain(recipes.of_row[row]):
        if recipes.tool(recipes.recipes[number].make) == NINJA:
            break  # a make below it has nothing from the makes above it
        around = recipes.argv(recipes.recipes[number].make)[1:]
        words = [word for word in around if _is_variable(word)] + words
    return words


def _is_variable(word: bytes) -> bool:
    return b"=" in word and not word.startswith(b"-")


def _ask_one(
    program: bytes,
    words: list[bytes],
    directory: Path,
    environment: Mapping[bytes, bytes],
    *,
    runs_shell: bool,
) -> Rules | str:
    if b"--" in words:
        return "its command has --"
    if not directory.is_dir():
        return f"{directory} is gone"
    if STDIN.intersection(words):
        return "it read a makefile from standard input, which nothing keeps"
    refuse_foreign(directory)
    kept = [word for word in words if not _JOBS.fullmatch(word)]
    own = _own_environment(environment)
    try:
        path = trusted_path(program)
        if path.name not in NAMES:
            return f"{path} is not run: its name is neither {' nor '.join(NAMES)}"
        with opened(path) as it:
            if _has_guile(path):
                return f"{path} is not run: it has Guile, and makefiles can be programs of it"
            allowed = Allowed(executes=runs_shell)
            done = run(it, [b"-pnk", *kept], directory, own, allowed=allowed, limits=LIMITS)
    except UntrustedError as error:
        return f"not run: {error}"
    if done.denied and os.geteuid() == ROOT:
        return f"{done.denied[0]} is not read: {PLAIN}"
    if not runs_shell and _has_missed_a_shell(done.stderr):
        return "its makefiles call $(shell): --run-shell lets them"
    if stopped := _stopped(done.stderr):
        return stopped
    rules = make_database.read(done.stdout.decode("utf-8", "surrogateescape"), directory)
    if rules is None:
        return "make prints no data base for it"
    generated.learn(rules)
    return rules


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
    if flags:
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
