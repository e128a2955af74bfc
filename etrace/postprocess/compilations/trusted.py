# SPDX-License-Identifier: Apache-2.0
"""Which compilers and directories of a database etrace uses: those that only root can change.

What makes a path trusted: etrace/sandbox/programs.py. Whose database it is: etrace/nfsdb/owned.py.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from etrace.compilers import tools
from etrace.sandbox.programs import UntrustedError, trusted_path


def trusted_compiler(name: bytes) -> Path:
    """Return the file of a compiler that may be run. UntrustedError."""
    path = trusted_path(name)
    if not (stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)):
        raise UntrustedError(f"{path}: not a program")
    tool = tools.load().find_name(os.fsencode(path))
    if tool is None or not tool.settings.get("probe"):
        raise UntrustedError(f"{path}: not a compiler that etrace may run")
    return path


def trusted_directory(name: bytes) -> Path:
    """Return a directory that only root can change. UntrustedError."""
    path = trusted_path(name)
    if not path.is_dir():
        raise UntrustedError(f"{path}: not a directory")
    return path
