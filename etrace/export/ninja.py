# SPDX-License-Identifier: Apache-2.0
"""The edges of a traced build -> the text of a build.ninja.

Escapes: ninja's manual, "Lexical syntax"; POSIX shell 2.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import BinaryIO

from libetrace.image.file import Image

from etrace.export import replayed_files
from etrace.export.goals import find_goals
from etrace.export.makefile import quote, set_breaks
from etrace.export.replay import Replay, replay
from etrace.nfsdb.environment import is_traced, of_processes
from etrace.query.rows.records import Records
from etrace.spec.database import NONE

#: ninja has no escape for a bar in a path, but it may come from a variable
BAR, BAR_SET = "${bar}", "bar = |"


def escape_path(path: str) -> str:
    """Return a path without line breaks as ninja reads it, where BAR_SET is in the file."""
    escaped = path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
    return escaped.replace("|", BAR)


#: variables that make, ninja and shells set for each command
VOLATILE = re.compile(rb"(MAKE\w*|MFLAGS|_|PWD|OLDPWD|SHLVL|NINJA\w*|LINES|COLUMNS)=.*", re.DOTALL)


class Environments:
    """What the environment of a command has that the first command's has not."""

    def __init__(self, image: Image) -> None:
        traced = of_processes(image) if is_traced(image) else {}
        lasting = {
            upid: {variable for variable in own if not VOLATILE.fullmatch(variable)}
            for upid, own in traced.items()
        }
        self._own = {upid: own for upid, own in lasting.items() if own}
        self.are_known = bool(self._own)
        start = image["executions"]["start_ns"]
        first = min(range(len(start)), key=start.__getitem__, default=NONE)
        upid = NONE if first == NONE else image["executions"]["upid"][first]
        self._base = self._own.get(upid, set())

    def words(self, upid: int) -> list[str]:
        """Return the words of env(1) that make the environment of a process."""
        own = self._own.get(upid)
        if own is None or own == self._base:
            return []
        names = {variable.partition(b"=")[0] for variable in own}
        gone = {variable.partition(b"=")[0] for variable in self._base} - names
        unset = [word for name in sorted(gone) for word in ("-u", os.fsdecode(name))]
        return ["env", *unset, *map(os.fsdecode, sorted(own - self._base))]


def _command(records: Records, environments: Environments, row: int) -> str:
    """Return the command of an execution: its program, arguments, directory and result."""
    argv = records.argv(row)
    binary = records.path(records.image["executions"]["binary"][row])
    program = argv[0]
    if "/" not in program and PurePosixPath(binary).name != program:
        program = binary
    words = [*environments.words(records.key(row)[0]), program, *argv[1:]]
    text = f"cd {quote(records.directory(row))} && {' '.join(map(quote, words))}"
    status = records.image["executions"]["status"][row]
    return f"({text})" if status in (0, NONE) else f"({text} || :)"


def _flat(text: str) -> str:
    """Return a text that stays in its line."""
    return text.replace("\n", " ").replace("\r", " ")


def _lines(
    records: Records, environments: Environments, found: Replay, goals: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield "# The commands of a traced build. See docs/exports.md."
    if not environments.are_known:
        yield "# Commands get the environment of ninja: etrace run --env would have kept theirs."
    for reason, texts in found.left_out.items():
        yield f"# left out, {reason}:"
        yield from (_flat(f"#   {text}") for text in sorted(set(texts)))
    for reason, texts in found.differing.items():
        yield f"# may differ, {reason}:"
        yield from (_flat(f"#   {text}") for text in sorted(set(texts)))
    yield "ninja_required_version = 1.7"
    if any("|" in path for build in found.builds for path in (*build.inputs, *build.outputs)):
        yield BAR_SET
    yield "rule run"
    yield "  command = $cmd"
    yield "  description = $what"
    yield "  restat = 1"
    yield "rule run_with_file"
    yield "  command = $cmd"
    yield "  description = $what"
    yield "  restat = 1"
    yield "  rspfile = $file"
    yield "  rspfile_content = $content"
    for build in found.builds:
        commands = [_command(records, environments, row) for row in build.commands]
        if build.renamed:
            # ninja makes the directories of outputs, and mv would move into them
            folders = " ".join(map(quote, sorted(build.renamed)))
            commands.insert(0, f"{{ ! find {folders} -depth -type d -empty -delete 2>&-; :; }}")
        if build.directories:
            commands.insert(0, f"mkdir -p {' '.join(map(quote, sorted(build.directories)))}")
        written = build.written
        command = " && ".join((*written.before, *commands, *written.after))
        outputs = " ".join(map(escape_path, sorted(build.outputs)))
        inputs = " ".join(map(escape_path, sorted(build.inputs)))
        last = PurePosixPath(records.argv(build.commands[-1])[0]).name
        yield ""
        rule = "run_with_file" if written.file else "run"
        yield f"build {outputs}: {rule}" + (f" | {inputs}" if inputs else "")
        yield f"  cmd = {set_breaks(command)}{command}"
        yield from replayed_files.lines(written)
        yield _flat(f"  what = {last} {sorted(build.outputs)[0]}").replace("$", "$$")
    if goals:
        yield "\n# phony targets of make"
    for name, files in goals.items():
        yield f"build {escape_path(name)}: phony {' '.join(map(escape_path, files))}"


def write(stream: BinaryIO, image: Image) -> tuple[Replay, bool]:
    """Write a build.ninja; return what it does, and whether commands have their environment."""
    records, environments = Records(image), Environments(image)
    found = replay(image)
    for line in _lines(records, environments, found, find_goals(image, found.builds)):
        stream.write(line.encode("utf-8", "surrogateescape") + b"\n")
    return found, environments.are_known
