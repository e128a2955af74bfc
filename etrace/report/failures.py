# SPDX-License-Identifier: Apache-2.0
"""What is shown of the commands that made a build fail."""

from __future__ import annotations

import os
from typing import Any

from libetrace.image.file import Image

from etrace.query.failures import SIGNALLED, find_failures, last_lines, status_text
from etrace.query.rows.commands import Commands, statuses
from etrace.query.summary import BIN_DIRECTORIES
from etrace.redaction.commands import shown_value
from etrace.report.pack import Pack, shown
from etrace.report.uses import Contents
from etrace.spec.database import ACCESS, EXISTS, NONE

MAX_FAILURES, MAX_FILES, MAX_LINES = 20, 15, 40
#: of a line: some compilers print whole programs
MAX_LINE = 2000
LETTERS = ("read", "write", "read, write", "read, write")


def add_failures(pack: Pack, contents: Contents) -> None:
    """Add `failures`, and `interrupted` with the signal that ended the build."""
    found = find_failures(contents.commands)
    pack.meta["failures"] = describe(contents.commands, found.commands)
    if found.interrupted_by:
        pack.meta["interrupted"] = status_text(SIGNALLED + found.interrupted_by)


def describe(commands: Commands, failed: list[int]) -> list[dict[str, Any]]:
    """Describe failed commands: what they wrote and opened last, their environment."""
    status = statuses(commands.image)
    return [
        {
            "command": number,
            "known": _known(commands, number),
            "ended": status_text(status[commands.rows[number]]),
            "output": [
                shown(line[:MAX_LINE].replace(b"\t", b"        "))
                for line in last_lines(commands, number, MAX_LINES)
            ],
            "files": _last_files(commands.image, commands.rows[number]),
            "environment": _environment(commands.image, commands.rows[number]),
        }
        for number in failed[:MAX_FAILURES]
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
    """Return `NAME=value` without secrets."""
    table, upid = image["environment"], image["executions"]["upid"][row]
    texts = (
        image.string(string)
        for own, string in zip(table["upid"], table["string"], strict=True)
        if own == upid
    )
    return sorted(shown(_without_secret(text)) for text in texts)


def _without_secret(text: bytes) -> bytes:
    name, sign, value = os.fsdecode(text).partition("=")
    return os.fsencode(name + sign + shown_value(name, value))
