# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lists of durations, one for each row of an account: what percentiles need, and no more.

A row of few calls has a small piece, one of many has pieces of 16 kB.
"""
from libetrace.core.memory cimport arena_take

cdef enum:
    FIRST_WORDS = 12
    MOST_WORDS = 4092


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
