# SPDX-License-Identifier: Apache-2.0
"""Files of a command -> how a compilation database writes their paths."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable

from etrace.export.commands.traced import Command, Commands
from etrace.spec.path_style import style_of

PARENT = b".."


class PathStyle(enum.StrEnum):
    """How paths are written; all are of the file that the command named."""

    AS_IS = "as-is"  #: as the command gives them
    ABSOLUTE = "absolute"  #: that, made absolute
    RELATIVE = "relative"  #: to `directory`
    CANONICAL = "canonical"  #: symbolic links resolved, as the trace shows them


class Paths:
    """Writes paths in one style. Those of an image are canonical."""

    def __init__(self, commands: Commands, style: PathStyle) -> None:
        self._commands, self._style = commands, style
        self._form = style_of(commands.image.attributes)

    def shown(self, command: Command, name: bytes | None, canonical: bytes) -> bytes:
        """Return the path of a file that a command calls `name`; None when it does not name it."""
        if self._style is PathStyle.CANONICAL:
            return canonical
        if self._style is PathStyle.AS_IS and name is not None:
            return name
        path = canonical if name is None else self._absolute(command.cwd, name, canonical)
        if self._style is PathStyle.RELATIVE and path.startswith(b"/"):
            return os.path.relpath(path, command.cwd)
        return path

    def named(self, command: Command, names: Iterable[bytes], canonical: bytes) -> bytes | None:
        """Return that of some names which is a file, None when none is."""
        basename = self._form.basename
        alike = [name for name in names if basename(name) == basename(canonical)]
        return next((name for name in alike if self.is_file(command, name, canonical)), None)

    def is_file(self, command: Command, name: bytes, canonical: bytes) -> bool:
        """Tell whether a name of a command is that of a file."""
        path = self._form.join(command.cwd, name)
        return path == canonical or self._commands.files.resolve(path) == canonical

    def _absolute(self, cwd: bytes, name: bytes, canonical: bytes) -> bytes:
        path = self._form.normpath(self._form.join(cwd, name))
        if self._form.is_windows or PARENT not in name.split(b"/"):
            return path
        # a directory before .. may be a symbolic link
        return path if self._commands.files.resolve(path) == canonical else canonical
