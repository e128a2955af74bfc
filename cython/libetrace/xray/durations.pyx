# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Durations of the calls of one row, and their percentiles: exact, and those of llvm-xray.

A row of few calls has a small piece, one of many has pieces of 16 kB. Percentiles are taken without
sorting. Of n sorted values they are the ones at n / 2, 9 n / 10 and 99 n / 100, rounded down. Few values
are selected from directly; of many, which of 976 logarithmic buckets holds each percentile is counted
first, and only that bucket is selected from.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from libetrace.core.memory cimport arena_take
from libetrace.core.types cimport s64

cdef enum:
    FIRST_WORDS = 12
    MOST_WORDS = 4092


# An empty one before `older`, which may be NULL; NULL without memory.
cdef Chunk *chunk_new(Arena *arena, Chunk *older) noexcept nogil:
    cdef u32 cap = FIRST_WORDS if older == NULL else min(2 * older.cap, <u32>MOST_WORDS)
    cdef Chunk *chunk = <Chunk *>arena_take(arena, sizeof(Chunk) + cap * sizeof(u32))
    if chunk == NULL:
        return NULL
    chunk.older = older
    chunk.n = 0
    chunk.cap = cap
    return chunk


cdef u64 durations_gather(const Chunk *last, u64 *values) noexcept nogil:
    cdef const u32 *words
    cdef u64 n = 0
    cdef u32 i
    while last != NULL:
        words = chunk_words(last)
        i = 0
        while i < last.n:
            values[n] = words[i]
            if words[i] == WIDE:
                values[n] = words[i + 1] | <u64>words[i + 2] << 32
                i += WIDE_WORDS - 1
            i += 1
            n += 1
        last = last.older
    return n


# ---- percentiles ----


cdef extern from *:
    int __builtin_clzll(unsigned long long value) nogil

cdef enum:
    N_BUCKETS = 61 * 16
    MANY = 4096  # values
    SMALL = 24


cdef void _sort_small(u64 *values, s64 n) noexcept nogil:
    cdef s64 i, j
    cdef u64 value
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


cdef u64 _pivot(const u64 *values, s64 n, u64 *state) noexcept nogil:
    # the median of three, drawn at random: no input can make it bad every time
    cdef u64 drawn[3]
    cdef int i
    for i in range(3):
        state[0] ^= state[0] << 13
        state[0] ^= state[0] >> 7
        state[0] ^= state[0] << 17
        drawn[i] = values[state[0] % <u64>n]
    _sort_small(drawn, 3)
    return drawn[1]


cdef u64 _select(u64 *values, s64 n, s64 wanted, u64 *state) noexcept nogil:
    """Put the element that sorting would put at `wanted` there; smaller ones are before it."""
    cdef s64 low = 0, high = n, left, right, i
    cdef u64 pivot, value
    while high - low > SMALL:
        pivot = _pivot(values + low, high - low, state)
        left = low
        right = high
        i = low
        while i < right:  # three parts: below the pivot, equal to it, above
            value = values[i]
            if value < pivot:
                values[i] = values[left]
                values[left] = value
                left += 1
                i += 1
            elif value > pivot:
                right -= 1
                values[i] = values[right]
                values[right] = value
            else:
                i += 1
        if wanted < left:
            high = left
        elif wanted >= right:
            low = right
        else:
            return pivot
    _sort_small(values + low, high - low)
    return values[wanted]


cdef int _bucket(u64 value) noexcept nogil:
    # Powers of two in sixteen steps each: rising with the value.
    cdef int power
    if value < 16:
        return <int>value
    power = 63 - __builtin_clzll(value)
    return (power - 3) * 16 + <int>(value >> (power - 4) & 15)


cdef u64 _select_in_bucket(u64 *values, s64 n, int bucket, s64 wanted, u64 *space, u64 *state) noexcept nogil:
    cdef s64 i, found = 0
    for i in range(n):
        space[found] = values[i]
        found += _bucket(values[i]) == bucket
    return _select(space, found, wanted, state)


cdef int _select_by_buckets(u64 *values, s64 n, const u64 *places, u64 *percentiles, u64 *state) noexcept nogil:
    """Take percentiles of many values: only those of three buckets are sorted; -1 without memory."""
    cdef u64[N_BUCKETS] counts
    cdef u64 *space
    cdef u64 before = 0
    cdef s64 i
    cdef int bucket = 0
    memset(counts, 0, sizeof(counts))
    for i in range(n):
        counts[_bucket(values[i])] += 1
    space = <u64 *>malloc((n + 1) * sizeof(u64))
    if space == NULL:
        return -1
    for i in range(N_PERCENTILES):
        while before + counts[bucket] <= places[i]:
            before += counts[bucket]
            bucket += 1
        percentiles[i] = _select_in_bucket(values, n, bucket, <s64>(places[i] - before), space, state)
    free(space)
    return 0


cdef int take_percentiles(u64 *values, u64 n, u64 *percentiles, u64 *state) noexcept nogil:
    cdef u64 at = 0
    cdef int i
    cdef u64[N_PERCENTILES] places
    places[0] = n // 2
    places[1] = n * 9 // 10
    places[2] = n * 99 // 100
    if n > MANY:
        return _select_by_buckets(values, <s64>n, places, percentiles, state)
    for i in range(N_PERCENTILES if n else 0):
        # elements before `at` are smaller already
        percentiles[i] = _select(values + at, <s64>(n - at), <s64>(places[i] - at), state)
        at = places[i]
    return 0
