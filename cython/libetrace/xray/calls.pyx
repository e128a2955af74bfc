# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of calls as Python has them: without the calls that a filter left out."""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdlib cimport free, malloc

from libetrace.core.types cimport s64, u64
from libetrace.xray.expander cimport LEFT_OUT, NO_CALL


cdef u64 _pack(Calls *calls, s64 *place) noexcept nogil:
    # Close the gaps of calls that were left out; `place` is where each went. How many there are.
    cdef u64 i, n = 0
    cdef s64 caller
    for i in range(calls.n):
        caller = calls.parent[i]
        if calls.ending[i] == LEFT_OUT:
            place[i] = NO_CALL if caller < 0 else place[caller]  # for those that it called
            continue
        place[i] = <s64>n
        calls.start[n] = calls.start[i]
        calls.ticks[n] = calls.ticks[i]
        calls.self_ticks[n] = calls.self_ticks[i]
        calls.parent[n] = NO_CALL if caller < 0 else place[caller]
        calls.function[n] = calls.function[i]
        calls.depth[n] = 0 if calls.parent[n] < 0 else calls.depth[calls.parent[n]] + 1
        calls.thread[n] = calls.thread[i]
        calls.ending[n] = calls.ending[i]
        n += 1
    return n


cdef bytearray _copy(const void *column, u64 n_bytes):
    return PyByteArray_FromStringAndSize(<const char *>column, n_bytes)


cdef list call_columns(Calls *calls):
    cdef s64 *place = <s64 *>malloc(calls.n * sizeof(s64) + 1)
    cdef u64 n
    if place == NULL:
        raise MemoryError
    with nogil:
        calls.n = n = _pack(calls, place)
    free(place)
    return [
        ("start", "Q", _copy(calls.start, n * 8)),
        ("ticks", "Q", _copy(calls.ticks, n * 8)),
        ("self_ticks", "Q", _copy(calls.self_ticks, n * 8)),
        ("parent", "q", _copy(calls.parent, n * 8)),
        ("function", "I", _copy(calls.function, n * 4)),
        ("depth", "I", _copy(calls.depth, n * 4)),
        ("thread", "I", _copy(calls.thread, n * 4)),
        ("ending", "B", _copy(calls.ending, n)),
    ]
