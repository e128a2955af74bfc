# SPDX-License-Identifier: Apache-2.0
"""Demangles C++ names with the C++ runtime's own `__cxa_demangle` (Itanium C++ ABI, section 5.1).

Without this library names stay mangled. A name may refer to its own parts, so that ten bytes more
double what it stands for. A name whose references are few is short; any other one is demangled by a
child with little memory and time. What comes out too long stays mangled.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
import resource
import signal
import struct
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")
#: of a demangled name for each byte of it (an ordinary one has 5), at least and at most, and of all
GROWTH_MAX, SHORT_BYTES_MAX, NAME_BYTES_MAX, ALL_BYTES_MAX = 64, 1 << 12, 1 << 16, 1 << 28
#: a name of so many bytes with so few references to its parts is demangled here: each one at most
#: doubles it
SHORT_BYTES, FEW_REFERENCES = 1024, 8
REFERENCE = re.compile(r"S[0-9A-Z]*_|T[0-9L]*_")
#: an expansion of a pack repeats a pattern as often as the pack has elements
EXPANSION = re.compile("Dp|sp|sZ|sP")
#: what a child may use for a name; an ordinary one takes 20 us
CHILD_CPU_SECONDS, CHILD_BYTES = 0.1, 1 << 24
#: children that names have killed, before such names stay mangled
DEATHS_MAX = 20
LENGTH = struct.Struct("<I")


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


def _demangled(library: Any, name: str) -> str:
    status = ctypes.c_int()
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        found = ctypes.string_at(text)
    finally:
        _free()(text)
    most = min(max(len(name) * GROWTH_MAX, SHORT_BYTES_MAX), NAME_BYTES_MAX)
    return found.decode(errors="replace") if len(found) <= most else name


def is_simple(name: str) -> bool:
    """Return whether a name stands for little, whatever it says."""
    if len(name) > SHORT_BYTES or EXPANSION.search(name):  # first: finding references is quadratic
        return False
    return len(REFERENCE.findall(name)) <= FEW_REFERENCES


def _data_bytes() -> int:
    pages = Path("/proc/self/statm").read_bytes().split()[5]
    return int(pages) * resource.getpagesize()


class Child:
    """Demangles names in a process that may die of it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._pid = 0
        self._requests = self._answers = -1
        self.n_deaths = 0

    def ask(self, name: str) -> str:
        """Return the demangled name, or the same name when that takes too much."""
        if self.n_deaths >= DEATHS_MAX:
            return name
        text, answer = name.encode(), None
        with suppress(OSError):  # no process, or it has died
            if not self._pid:
                self._start()
            os.write(self._requests, LENGTH.pack(len(text)) + text)
            answer = _receive(self._answers)
        if answer is None:
            self.close()
            self.n_deaths += 1
            return name
        return answer.decode(errors="replace")

    def close(self) -> None:
        """End the process."""
        if self._pid:
            os.close(self._requests)
            os.close(self._answers)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _start(self) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._requests)
            os.close(self._answers)
            _serve(self._library, requests, answers)
        os.close(requests)
        os.close(answers)


def _serve(library: Any, requests: int, answers: int) -> NoReturn:
    """Answer requests until there are no more. Ctrl-C ends the parent, and so this."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + CHILD_BYTES, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        while (name := _receive(requests)) is not None:
            signal.setitimer(signal.ITIMER_PROF, CHILD_CPU_SECONDS)
            found = _demangled(library, name.decode()).encode()
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(answers, LENGTH.pack(len(found)) + found)
    finally:
        os._exit(0)


def _receive(fd: int) -> bytes | None:
    head = _take(fd, LENGTH.size)
    return None if len(head) < LENGTH.size else _take(fd, *LENGTH.unpack(head))


def _take(fd: int, n_bytes: int) -> bytes:
    found = b""
    while len(found) < n_bytes and (part := os.read(fd, n_bytes - len(found))):
        found += part
    return found


class Demangler:
    """Demangles the names of a program; all together have a limit."""

    def __init__(self) -> None:
        self._n_left = ALL_BYTES_MAX
        self._child: Child | None = None

    def demangle(self, name: str) -> str:
        """Return the name as its source has it, or the same name when it is not mangled."""
        if not name.startswith(("_Z", "___Z")):
            return name
        library = _library()
        if library is None or self._n_left <= 0:
            return name
        found = _demangled(library, name) if is_simple(name) else self._in_child(library, name)
        self._n_left -= len(found)
        return found

    def _in_child(self, library: Any, name: str) -> str:
        if len(name) > NAME_BYTES_MAX:
            return name
        if self._child is None:
            self._child = Child(library)
        return self._child.ask(name)


@lru_cache(maxsize=1)
def _demangler() -> Demangler:
    return Demangler()


def demangle(name: str) -> str:
    """Return the name as its source has it, or the same name when it is not mangled."""
    return _demangler().demangle(name)
