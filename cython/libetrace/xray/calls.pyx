# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Calls as Python has them: in columns without those that a filter left out; their records."""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdlib cimport calloc, free, malloc

from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.xray.expander cimport (
    LEFT_OUT, NO_CALL, Expander, expand, expand_begin, expand_end, expander_free, expander_init,
)


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


cdef int _mark(Expander *expander, const u64 *tsc, const u32 *function, const u8 *kind, u64 n) noexcept nogil:
    if expander_init(expander, n) < 0 or expand_begin(expander, 0, 0) < 0:
        return -1
    return -1 if expand(expander, tsc, function, kind, n) < 0 or expand_end(expander) < 0 else 0


def mark_short_calls(const u64[::1] tsc, const u32[::1] function, const u8[::1] kind, u64 shortest):
    """Return a byte for each record of one thread: 1 for enters and exits of calls below `shortest`.

    An exit that ends no call has 1, too. `shortest` is in ticks; all columns have one length.
    """
    cdef Expander *expander
    cdef u64 n = tsc.shape[0]
    cdef int status = 0
    cdef u8[::1] marks
    if <u64>function.shape[0] != n or <u64>kind.shape[0] != n:
        raise ValueError("columns of different lengths")
    found = bytearray(n)
    if not n:
        return found
    marks = found
    expander = <Expander *>calloc(1, sizeof(Expander))
    if expander == NULL:
        raise MemoryError
    expander.options.shortest = shortest
    expander.options.until_tsc = ~<u64>0
    expander.left_out = &marks[0]
    with nogil:
        status = _mark(expander, &tsc[0], &function[0], &kind[0], n)
        expander_free(expander)
    free(expander)
    if status < 0:
        raise MemoryError
    return found
