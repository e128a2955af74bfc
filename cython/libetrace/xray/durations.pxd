# SPDX-License-Identifier: Apache-2.0
# How long each call of a row took: lists of words that grow, 4 bytes for a duration below 2^32 ticks.
from libetrace.core.memory cimport Arena
from libetrace.core.types cimport u32, u64

cdef enum:
    WIDE = 0xffffffff  # two words follow, the low one first
    WIDE_WORDS = 3


# The last piece of a list; its words follow it.
cdef struct Chunk:
    Chunk *older
    u32 n  # words
    u32 cap


cdef inline u32 *chunk_words(const Chunk *chunk) noexcept nogil:
    return <u32 *>(chunk + 1)


# Write all durations of a list to `values`, in any order; how many there are.
cdef u64 durations_gather(const Chunk *last, u64 *values) noexcept nogil


# An empty one before `older`, which may be NULL; NULL without memory.
cdef Chunk *chunk_new(Arena *arena, Chunk *older) noexcept nogil
# -1 without memory.
cdef inline int durations_add(Arena *arena, Chunk **last, u64 ticks) noexcept nogil:
    cdef Chunk *chunk = last[0]
    cdef u32 *words
    if chunk == NULL or chunk.cap - chunk.n < WIDE_WORDS:
        chunk = chunk_new(arena, chunk)
        if chunk == NULL:
            return -1
        last[0] = chunk
    words = chunk_words(chunk)
    if ticks < WIDE:
        words[chunk.n] = <u32>ticks
        chunk.n += 1
        return 0
    words[chunk.n] = WIDE
    words[chunk.n + 1] = <u32>ticks
    words[chunk.n + 2] = <u32>(ticks >> 32)
    chunk.n += WIDE_WORDS
    return 0


cdef enum:
    N_PERCENTILES = 3


# Into `percentiles`; the order of `values` changes. `state` of a random generator is not 0. -1 without memory.
cdef int take_percentiles(u64 *values, u64 n, u64 *percentiles, u64 *state) noexcept nogil
