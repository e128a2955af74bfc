# SPDX-License-Identifier: Apache-2.0
"""What libetrace raises: `libetrace.error` and its kinds."""

from __future__ import annotations


class Error(Exception):
    """Something is wrong with a database or with a question to it; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotFoundError(Error, KeyError):
    """The database has no such process, execution, binary or path."""


class PatternError(Error, ValueError):
    """A glob is longer than any path, or costs more than one that means something."""


class FilterError(Error, ValueError):
    """A filter names a condition that does not exist, or gives it a value it cannot have."""
