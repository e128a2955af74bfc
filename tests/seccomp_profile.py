# SPDX-License-Identifier: Apache-2.0
"""A seccomp profile that takes one system call away, as those of containers do: seccomp(2)."""

from __future__ import annotations

import ctypes
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000


def forbid(call: int, errno: int) -> None:
    """Let a system call fail from here on, in this process and its children."""
    rules = (
        (0x20, 0, 0, 0),  # load the number of the call
        (0x15, 0, 1, call),
        (0x06, 0, 0, RET_ERRNO | errno),
        (0x06, 0, 0, RET_ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program
    ):
        raise OSError(ctypes.get_errno(), "seccomp")
