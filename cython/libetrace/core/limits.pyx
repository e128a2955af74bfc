# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The limits of 31 and 32 bits, in one place.

Rows of an image are stored in 32 bits, some of them with a sign for "no row".
"""
from libetrace.core.errors import Error

cdef extern from *:
    """
    static _Thread_local int passed_limit;
    """
    int passed_limit

cdef enum:
    ROWS = 0x7fffffff

NAMES = ("", "strings", "string_bytes", "processes", "executions", "opens")
assert len(NAMES) == N_LIMITS

ceilings[:] = [0, 1 << 30, 0xfffffffe, ROWS, ROWS, ROWS]

cdef const char *TEXTS[N_LIMITS]
TEXTS[:] = [
    b"not enough memory",
    b"more distinct strings than an image can number",
    b"a string that is longer than an image can hold",
    b"more processes than an image can number",
    b"more executions than an image can number",
    b"more opened files than an image can number",
]


class LimitError(Error):
    """A trace or a database has more of something than an image can number."""


cdef int pass_limit(int limit) noexcept nogil:
    global passed_limit
    passed_limit = limit
    return -1


cdef int take_limit() noexcept nogil:
    global passed_limit
    cdef int limit = passed_limit
    passed_limit = NO_LIMIT
    return limit


cdef const char *limit_text(int limit) noexcept nogil:
    return TEXTS[limit]


def check(int limit):
    """Raise LimitError for a limit that was passed, MemoryError when none was."""
    if limit == NO_LIMIT:
        raise MemoryError
    raise LimitError(f"{TEXTS[limit].decode()} ({ceilings[limit]})", "trace a smaller build")


def lower(str name, u64 ceiling):
    """Set a ceiling, for tests; return the one that was."""
    cdef u64 before = ceilings[NAMES.index(name)]
    ceilings[<int>NAMES.index(name)] = ceiling
    return before
