# SPDX-License-Identifier: Apache-2.0
"""fnmatch(3) of the C library, in the C locale whatever this process runs in: the oracle."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

LC_ALL_MASK = 0x1FBF
FNM_NOMATCH = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.newlocale.restype = ctypes.c_void_p
_libc.newlocale.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p]
_libc.uselocale.restype = ctypes.c_void_p
_libc.uselocale.argtypes = [ctypes.c_void_p]
_libc.fnmatch.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]


@contextmanager
def c_locale() -> Iterator[None]:
    """Run this thread in the C locale."""
    before = _libc.uselocale(_libc.newlocale(LC_ALL_MASK, b"C", None))
    try:
        yield
    finally:
        _libc.uselocale(before)


def c_fnmatch(pattern: bytes, text: bytes) -> bool:
    """Return whether the C library matches; neither may hold a NUL byte."""
    status = _libc.fnmatch(pattern, text, 0)
    assert status in {0, FNM_NOMATCH}
    return bool(status == 0)
