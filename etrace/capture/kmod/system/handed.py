# SPDX-License-Identifier: Apache-2.0
"""The trace of a session that etraced runs for a user: a descriptor that the user has opened.

The service opens, makes and renames nothing: names are the matter of the user's own process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from etrace.capture.kmod.system.output import Output, identity_of
from etrace.capture.kmod.system.owner import Owner, acting_as
from etrace.errors import CaptureError

#: of a session whose service died: the user's process alone still has the file
GONE = -1


@dataclass(frozen=True, slots=True)
class Handed(Output):
    """`Output` of one open file, `fd`. `directory` is what to call it."""

    fd: int = GONE

    def create(self) -> int:
        """Return a descriptor of the file."""
        return os.dup(self.fd)

    def reopen(self, trace: tuple[int, int]) -> int:
        """See Output.reopen."""
        self._need(trace)
        return os.dup(self.fd)

    def append(self, trace: tuple[int, int], content: bytes) -> None:
        """See Output.append: with the rights of the owner, whose quota it is."""
        self._need(trace)
        try:
            with acting_as(self.owner):
                os.lseek(self.fd, 0, os.SEEK_END)
                os.write(self.fd, content)
        except OSError as error:
            raise CaptureError(f"{self.directory}: {error.strerror}") from error

    def left_over(self) -> bool:
        """See Output.left_over: that is for the user's process to see."""
        return False

    def check(self, _names: tuple[str, ...]) -> None:
        """See Output.check."""

    def publish(self, _name: str, _trace: tuple[int, int]) -> bool:
        """See Output.publish."""
        return False

    def write_stats(self, _content: bytes) -> None:
        """See Output.write_stats."""

    def discard(self) -> None:
        """See Output.discard."""

    def _need(self, trace: tuple[int, int]) -> None:
        if self.fd == GONE or identity_of(self.fd) != trace:
            raise CaptureError("the trace is no longer open here")


def handed(fd: int, owner: Owner) -> Handed:
    """Return the output for a descriptor that was checked."""
    return Handed(Path(f"a file of user {owner.uid}"), owner, identity_of(fd), fd)
