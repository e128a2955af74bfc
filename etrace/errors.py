# SPDX-License-Identifier: Apache-2.0
"""The one exception tree of etrace; commands catch it at their outermost level only."""

from __future__ import annotations


class EtraceError(Exception):
    """An error that the user can understand.

    `message` says what went wrong, `hint` (may be empty) what to do next; `status` is the exit
    status of the command: docs/queries.md lists them.
    """

    status = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NothingFoundError(EtraceError):
    """The command line and its input are right, and what it asks for is not there."""

    status = 1


class UsageError(EtraceError):
    """The command line is wrong or contradicts itself."""


class CaptureError(EtraceError):
    """A build could not be captured; the build itself may not have run."""

    status = 125


class SpecError(EtraceError):
    """events.toml contradicts itself, or a rendered file is not what it renders to."""
