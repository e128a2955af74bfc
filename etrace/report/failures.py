# SPDX-License-Identifier: Apache-2.0
"""A failed build -> the commands that made it fail.

A command failed the build when it and every command above it ended with a status other than 0, and
no command below it did. Of the children of a shell only the last counts: the others failed without
ending the shell (`configure` tries what fails).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import Any

from libetrace.image.file import Image

from etrace.query.summary import BIN_DIRECTORIES
from etrace.report.commands import Commands, statuses
from etrace.report.pack import shown
from etrace.spec.database import ACCESS, EXISTS, NONE

MAX_FAILURES, MAX_FILES = 20, 15
LETTERS = ("read", "write", "read, write", "read, write")
SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"ksh", b"busybox"))
#: variables whose values do not belong on a page that is passed on
SECRET = re.compile(rb"(?i)secret|token|passw|credential|api_?key|private|auth|cookie")


def failures(commands: Commands) -> list[int]:
    """Return the commands that failed the build, the first to end first."""
    image, rows = commands.image, commands.rows
    table, status = image["executions"], statuses(image)
    below: defaultdict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if status[row] not in (0, NONE) and _is_last(image, row):
            below[commands.parent(number)].append(number)

    def ended(number: int) -> int:
        return int(table["start_ns"][rows[number]] + table["elapsed_ns"][rows[number]])

    found, waiting, seen = [], below[NONE][:], set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        guilty = sorted(_all_below(commands, below, number), key=ended)
        if commands.program(rows[number]) in SHELLS:
            guilty = guilty[-1:]
        waiting += guilty
        if not guilty:
            found.append(number)
    return sorted(found, key=ended)


def _is_last(image: Image, row: int) -> bool:
    upid = image["executions"]["upid"]
    return row + 1 == len(upid) or bool(upid[row + 1] != upid[row])


def _all_below(commands: Commands, below: dict[int, list[int]], number: int) -> list[int]:
    """Return failed children of all executions of a command's process."""
    table, row = commands.image["executions"], commands.rows[number]
    upid, found = table["upid"], []
    while row >= 0 and upid[row] == upid[commands.rows[number]]:
        if row in commands.number:
            found += below.get(commands.number[row], [])
        row -= 1
    return found


def describe(commands: Commands) -> list[dict[str, Any]]:
    """Describe the failures: the command, the files that it opened last, its environment."""
    return [
        {
            "command": number,
            "known": _known(commands, number),
            "files": _last_files(commands.image, commands.rows[number]),
            "environment": _environment(commands.image, commands.rows[number]),
        }
        for number in failures(commands)[:MAX_FAILURES]
    ]


def _known(commands: Commands, number: int) -> int:
    """Return the nearest command in a bin directory: gcc for its cc1."""
    at, seen = number, set[int]()
    while at != NONE and at not in seen:
        seen.add(at)
        binary = commands.image["executions"]["binary"][commands.rows[at]]
        if binary != NONE:
            directory = os.fsdecode(commands.image.path_string(binary)).split("/")[-2:-1]
            if BIN_DIRECTORIES.issuperset(directory):
                return at
        at = commands.parent(at)
    return number


def _last_files(image: Image, row: int) -> list[dict[str, Any]]:
    opens = image["opens"]
    span = sorted(image["executions"].span("opens.start", row), key=opens["open_ns"].__getitem__)
    return [
        {
            "path": shown(image.path_string(opens["path"][i])),
            "access": LETTERS[opens["mode"][i] & ACCESS],
            "exists": bool(opens["mode"][i] & EXISTS),
        }
        for i in span[-MAX_FILES:]
    ]


def _environment(image: Image, row: int) -> list[str]:
    """Return `NAME=value`; values of names that look secret are left out."""
    table, upid = image["environment"], image["executions"]["upid"][row]
    texts = (
        image.string(string)
        for own, string in zip(table["upid"], table["string"], strict=True)
        if own == upid
    )
    return sorted(shown(_without_secret(text)) for text in texts)


def _without_secret(text: bytes) -> bytes:
    name, sign, value = text.partition(b"=")
    return name + sign + (b"(hidden)" if SECRET.search(name) and value else value)
