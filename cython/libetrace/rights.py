# SPDX-License-Identifier: Apache-2.0
"""Who may read a new file: nobody who may not read all that it is made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

ROOT = 0
PRIVATE = 0o600
READ_AND_WRITE = 0o666


def narrow(fd: int, models: Sequence[Path]) -> None:
    """Take from a new file the rights that one of `models` does not give. OSError.

    What root makes of nothing that tells is root's alone: programs get secrets as arguments and in
    their environment.
    """
    mode = os.fstat(fd).st_mode & READ_AND_WRITE
    if not models and os.geteuid() == ROOT:
        mode &= PRIVATE
    for model in models:
        mode &= model.stat().st_mode
    os.fchmod(fd, mode)


def give_away(fd: int, models: Sequence[Path]) -> None:
    """Give what root makes to the owner that all of `models` have. OSError.

    What is made of files of several owners stays root's: none of them may read the others'.
    """
    if os.geteuid() != ROOT:
        return
    owners = {(status.st_uid, status.st_gid) for status in (model.stat() for model in models)}
    if len(owners) == 1:
        os.fchown(fd, *owners.pop())
