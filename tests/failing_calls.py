# SPDX-License-Identifier: Apache-2.0
"""Make calls fail that do not fail on this machine: by functions before libc's, by seccomp(2)."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from pathlib import Path


def preloading(folder: Path, source: str) -> dict[str, str]:
    """Return an environment in which programs call the functions of `source` first."""
    library, text = folder / "preloaded.so", folder / "preloaded.c"
    text.write_text(source)
    done = subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, text],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n(apt-get install gcc libc6-dev)"
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0".lstrip(":"),
    }


#: seccomp(2)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_ERRNO = 0x7FFF0000, 0x00050000


def forbid(call: int, errno: int) -> None:
    """Let a system call fail in this process and its children, as containers' profiles do."""
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
