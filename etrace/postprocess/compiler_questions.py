# SPDX-License-Identifier: Apache-2.0
"""The command of a compilation -> what to ask its compiler: `Question` of probe.py.

Only options that change the compiler's own directories are handed on, their directories absolute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from posixpath import join

from etrace.postprocess.compiler_commands import Command
from etrace.postprocess.probe import Question

#: the -x of a compiler that is asked for its directories
ASKED_AS = {
    "c": "c",
    "c++": "c++",
    "objective-c": "objective-c",
    "objective-c++": "objective-c++",
    "assembler": "c",
}
TARGET_OPTIONS = (b"-target", b"--target", b"-triple")
DIRECTORY_OPTIONS = (
    b"--sysroot",
    b"-isysroot",
    b"-resource-dir",
    b"--gcc-toolchain",
    b"-gcc-toolchain",
)


class Questions:
    """What to ask the compiler of each command of one build."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._by_name: dict[bytes, bytes] = {}  # of compilers, to know what a launcher launched
        for command in commands:
            if not command.is_launched:
                self._by_name.setdefault(command.binary.rpartition(b"/")[2], command.binary)

    def of(self, command: Command) -> Question | None:
        """Return what to ask, None when there is nothing or nobody to ask."""
        invocation = command.invocation
        language = ASKED_AS.get(invocation.language)
        binary = self._launched(command.argv0) if command.is_launched else command.binary
        if not (language and binary and invocation.is_standard):
            return None
        if not command.tool.settings.get("probe") or names_configuration(invocation.target):
            return None
        return Question(binary, language, rooted_options(invocation.target, command.cwd))

    def _launched(self, argv0: bytes) -> bytes:
        return argv0 if argv0.startswith(b"/") else self._by_name.get(argv0, b"")


def names_configuration(options: Sequence[bytes]) -> bool:
    """Tell whether a target is a path: clang would read its configuration from there."""
    before = b""
    for option in options:
        flag, _, value = option.partition(b"=")
        if b"/" in value and flag in TARGET_OPTIONS:
            return True
        if b"/" in option and before in TARGET_OPTIONS:
            return True
        before = option
    return False


def rooted_options(options: Sequence[bytes], cwd: bytes) -> tuple[bytes, ...]:
    """Make the directories in options absolute: the compiler is asked elsewhere."""
    out: list[bytes] = []
    for option in options:
        flag, equals, value = option.partition(b"=")
        if out and out[-1] in DIRECTORY_OPTIONS and not equals:
            out.append(join(cwd, option))
        elif equals and flag in DIRECTORY_OPTIONS:
            out.append(flag + equals + join(cwd, value))
        else:
            out.append(option)
    return tuple(out)
