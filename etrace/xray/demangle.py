# SPDX-License-Identifier: Apache-2.0
"""Demangles C++ names with the C++ runtime's own `__cxa_demangle` (Itanium C++ ABI, section 5.1).

Without this library names stay mangled.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import lru_cache
from typing import Any

LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")


@lru_cache(maxsize=1)
def _library() -> Any:
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        library.__cxa_demangle.argtypes = [
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_int),
        ]
        return library
    return None


@lru_cache(maxsize=1)
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    return free


def demangle(name: str) -> str:
    """Return the name as its source has it, or the same name when it is not mangled."""
    if not name.startswith(("_Z", "___Z")):
        return name
    library = _library()
    if library is None:
        return name
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        _free()(text)
