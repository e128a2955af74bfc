# SPDX-License-Identifier: Apache-2.0
"""A child process that cannot change any file, by Landlock.

Source: Linux's Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h. Numbers
of the calls are those of all architectures. A right that a ruleset handles and no rule grants is
denied; opens of /dev/null for writing are denied, too.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from etrace.errors import EtraceError

CREATE_RULESET, RESTRICT_SELF = 444, 446
VERSION_FLAG = 1
NO_NEW_PRIVS = 38
WRITE_FILE, FIRST_CHANGE, LAST_CHANGE = 1, 4, 12
#: rights by version of Landlock: 2 adds REFER, 3 TRUNCATE
REFER, TRUNCATE = 1 << 13, 1 << 14
MAX_SECONDS = 120
#: of what it prints, and of its memory
MAX_BYTES, MAX_MEMORY = 256 << 20, 8 << 30


def _call(number: int, *words: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *words))


def version() -> int:
    """Return the version of Landlock, 0 without it."""
    found = _call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(VERSION_FLAG))
    return max(found, 0)


def _restrict(rights: int) -> None:
    """Deny this process and its children to change files, and limit them. OSError."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    libc = ctypes.CDLL(None, use_errno=True)
    handled = ctypes.c_uint64(rights)
    ruleset = _call(CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint(0))
    if ruleset < 0 or libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "Landlock")
    if _call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)):
        raise OSError(ctypes.get_errno(), "Landlock")
    os.close(ruleset)


def run(
    command: Sequence[bytes], directory: Path, environment: Mapping[bytes, bytes]
) -> subprocess.CompletedProcess[bytes]:
    """Run a command that can read, but changes nothing; keep what it prints.

    EtraceError without Landlock, for a program that is not there, after MAX_SECONDS, and when it
    prints more than MAX_BYTES.
    """
    known = version()
    if not known:
        raise EtraceError(
            "this kernel has no Landlock, so make could change files while it is asked",
            "take Linux 5.13 or later with landlock among its security modules (lsm=)",
        )
    rights = 1 << WRITE_FILE | sum(1 << bit for bit in range(FIRST_CHANGE, LAST_CHANGE + 1))
    rights |= (REFER if known > 1 else 0) | (TRUNCATE if known > 2 else 0)
    shown = os.fsdecode(command[0])
    sys.stdout.flush()
    try:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            done = subprocess.run(
                command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, check=False, timeout=MAX_SECONDS,
                preexec_fn=lambda: _restrict(rights),
            )  # fmt: skip
            if max(os.fstat(stream.fileno()).st_size for stream in (out, err)) >= MAX_BYTES:
                raise EtraceError(
                    f"{shown} printed more than {MAX_BYTES} bytes", "see what it prints"
                )
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())
    except subprocess.TimeoutExpired as error:
        hint = "a makefile may wait for something"
        raise EtraceError(f"{shown} took more than {MAX_SECONDS} s", hint) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise EtraceError(f"cannot run {shown} in {directory}: {error}", "is it there?") from error
