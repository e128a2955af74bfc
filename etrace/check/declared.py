# SPDX-License-Identifier: Apache-2.0
"""Runs of make and ninja in an image -> the rules that their makefiles declare now.

Make is asked by `make -pnk` with the words of the trace. It gets a shell that is not there, so that
neither recipes nor `$(shell)` run. When it missed that shell more often than recipes ended for it,
makefiles use `$(shell)`. Then the rules may lack names, and are known only with
`runs_shell`: then make gets its own shell. Both ways nothing can be changed (rules/read_only.py).
Of ninja: rules/ninja_rules.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libetrace.image.file import Image

from etrace.check.recipes import NINJA, Recipes
from etrace.check.rules import generated, make_database, ninja_rules, read_only
from etrace.check.rules.rule import Rules
from etrace.errors import EtraceError
from etrace.nfsdb.above import my_users
from etrace.nfsdb.environment import of_processes
from etrace.postprocess.compilations.trusted import changeable, check_owner

REFUSED = ("its make and ninja are not run", "run etrace check as that user")
NO_SHELL = b"/etrace-check-runs-no-shell"
#: job server and -j; `--` begins variables
_JOBS = re.compile(rb"(?:-j\d*|--jobs(?:=\d*)?|--jobserver-\w+=\S*|--sync-\S*|-O\w*)")
_STOPPED = re.compile(rb"^(.*\*\*\* .*)  Stop\.$", re.MULTILINE)
_ENDED = re.compile(rb"^make.*\*\*\* .*Error 127", re.MULTILINE)


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


def ask(recipes: Recipes, *, runs_shell: bool = False) -> Asked:
    """Return the rules of each make and ninja. EtraceError when nobody may ask here."""
    check_owner(recipes.image, REFUSED)
    asked, environments = Asked(), _environments(recipes.image)
    known: dict[tuple[object, ...], Rules | str] = {}
    for row in recipes.makes:
        if recipes.tool(row) == NINJA:
            _ask_ninja(recipes, row, asked, known)
            continue
        upid = recipes.image["executions"]["upid"][row]
        words = [*_inherited(recipes, row, upid in environments), *recipes.argv(row)[1:]]
        environment = environments.get(upid) or dict(os.environb)
        directory = Path(recipes.records.directory(row))
        key = (directory, tuple(words), tuple(sorted(environment.items())))
        if key not in known:
            program = recipes.image.path_string(recipes.image["executions"]["binary"][row])
            known[key] = _refused(program) or _ask_one(
                program, words, directory, environment, runs_shell=runs_shell
            )
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
        if at.directory.is_dir():
            _refuse_foreign(at.directory)
        known[at,] = _refused(program) or ninja_rules.ask(program, at)
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
    _refuse_foreign(directory)
    own = {
        name: value for name, value in environment.items()
        if name not in (b"MAKEFLAGS", b"MFLAGS", b"MAKE_RESTARTS")
    }  # fmt: skip
    own[b"LC_ALL"] = b"C"
    own.setdefault(b"PATH", b"/usr/bin:/bin")
    flags = [w for w in environment.get(b"MAKEFLAGS", b"").split() if not _JOBS.fullmatch(w)]
    if flags:
        own[b"MAKEFLAGS"] = b" ".join(flags)
    kept, shell = [word for word in words if not _JOBS.fullmatch(word)], list[bytes]()
    if not runs_shell:
        kept = [word for word in kept if not re.match(rb"SHELL\s*:*=", word)]
        shell = [b"SHELL=" + NO_SHELL]
    done = read_only.run([program, b"-pnk", *shell, *kept], directory, own)
    if not runs_shell:
        n_missed = done.stderr.count(NO_SHELL + b": ")
        if n_missed > len(_ENDED.findall(done.stderr)):
            return "its makefiles call $(shell): --run-shell lets them"
    if stopped := _STOPPED.search(done.stderr):
        return os.fsdecode(stopped[1])
    text = done.stdout.decode("utf-8", "surrogateescape")
    rules = make_database.read(text, directory)
    if rules is None:
        return "make prints no data base for it"
    generated.learn(rules)
    return rules


def _refused(program: bytes) -> str:
    """Return why a make or ninja may not run: others can have put it there; empty when it may.

    An imported trace may name any file of this machine.
    """
    path = Path(os.fsdecode(program))
    if not path.is_file():
        return f"{path} is gone"
    found = changeable(path.resolve(), {0, os.geteuid()}, allows_sticky=True)
    return "" if found is None else f"{path} is not run: others may change {found[0]}"


def _refuse_foreign(directory: Path) -> None:
    """Refuse to read makefiles of others as root: they can load programs into make."""
    owner = directory.stat().st_uid
    if os.geteuid() == 0 and owner not in my_users():
        raise EtraceError(
            f"{directory} belongs to another user, whose makefiles root does not read",
            "run this as that user",
        )
