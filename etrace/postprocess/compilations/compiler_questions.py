# SPDX-License-Identifier: Apache-2.0
"""The command of a compilation -> what to ask its compiler: `Question` of probe.py.

Options come from a database that anybody may have written. So the few that change the compiler's
own directories are listed here with what their values may be, and only they are handed on; a
command with another one that changes directories is not asked about. None of them names a file
that a compiler would load or run (-B, -specs, -fplugin, -wrapper, --config, a target with a slash).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from etrace.postprocess.compilations.compiler_commands import Command
from etrace.postprocess.compilations.probe import Question
from etrace.postprocess.compilations.trusted import trusted_directory
from etrace.sandbox.programs import UntrustedError
from etrace.spec.path_style import join_posix

#: the -x of a compiler that is asked for its directories
ASKED_AS = {
    "c": "c",
    "c++": "c++",
    "objective-c": "objective-c",
    "objective-c++": "objective-c++",
    "assembler": "c",
}
#: options without a value
FLAGS = frozenset(
    (b"-m32", b"-m64", b"-mx32", b"-m16", b"-mthumb", b"-marm", b"-ansi", b"-pthread")
) | {b"-nostdinc++", b"-nobuiltininc"}
#: options whose value is a word, as it is handed on: joined
WORDS = {
    b"-std=": b"-std=",
    b"--std=": b"-std=",
    b"--std": b"-std=",
    b"-mabi=": b"-mabi=",
    b"-mfloat-abi=": b"-mfloat-abi=",
    b"-stdlib=": b"-stdlib=",
    b"--stdlib=": b"-stdlib=",
    b"--target=": b"--target=",
    b"--target": b"--target=",
    b"-target": b"--target=",
}
WORD = re.compile(rb"[A-Za-z0-9][\w.+:-]{0,63}")
#: options whose value is a directory, which only root can change
DIRECTORIES = {b"--sysroot=": b"--sysroot=", b"-isysroot": b"-isysroot"}


class Questions:
    """What to ask the compiler of each command of one build."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._by_name: dict[bytes, bytes] = {}  # of compilers that ran themselves
        for command in commands:
            if not command.is_launched:
                self._by_name.setdefault(command.binary.rpartition(b"/")[2], command.binary)

    def of(self, command: Command) -> Question | None:
        """Return what to ask, None when there is nothing or nobody to ask."""
        invocation = command.invocation
        language = ASKED_AS.get(invocation.language)
        binary = self._launched(command) if command.is_launched else command.binary
        if not (language and binary and invocation.is_standard):
            return None
        if not command.tool.settings.get("probe"):
            return None
        options = allowed_options(invocation.target, command.cwd)
        return None if options is None else Question(binary, language, options)

    def _launched(self, command: Command) -> bytes:
        """Return the compiler of a launcher's command when the build ran one of that name too."""
        return self._by_name.get(command.argv0.rpartition(b"/")[2], b"")


def allowed_options(options: Sequence[bytes], cwd: bytes) -> tuple[bytes, ...] | None:
    """Return options as they may be handed on; None when one of them may not.

    The directories in them become absolute: the compiler is asked elsewhere.
    """
    out: list[bytes] = []
    rest = iter(options)
    for option in rest:
        if option in FLAGS:
            out.append(option)
            continue
        flag, equals, value = option.partition(b"=")
        flag += equals
        if flag not in WORDS and flag not in DIRECTORIES:
            return None
        value = value if equals else next(rest, b"")
        handed_on = _word(flag, value) or _directory(flag, join_posix(cwd, value) if value else b"")
        if not handed_on:
            return None
        out += handed_on
    return tuple(out)


def _word(flag: bytes, value: bytes) -> list[bytes]:
    is_word = flag in WORDS and WORD.fullmatch(value)
    return [WORDS[flag] + value] if is_word else []


def _directory(flag: bytes, value: bytes) -> list[bytes]:
    if flag not in DIRECTORIES:
        return []
    try:
        path = os.fsencode(trusted_directory(value))
    except UntrustedError:
        return []
    name = DIRECTORIES[flag]
    return [name + path] if name.endswith(b"=") else [name, path]
