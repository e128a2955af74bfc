# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory of the parser's nogil code: an arena and a growing array. Nothing here is seen by Python."""
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from libetrace.core.spill cimport spill_give, spill_take
from libetrace.core.scan cimport ETRACE_BLOCK_BYTES, ETRACE_GROWN_BLOCK_BYTES, ETRACE_PAD

cdef enum:
    FIRST_BYTES = 256


cdef void *arena_new_block(Arena *arena, size_t size) noexcept nogil:
    cdef size_t head = (sizeof(Block) + 7) & ~<size_t>7
    cdef size_t total = ETRACE_GROWN_BLOCK_BYTES if arena.block != NULL else ETRACE_BLOCK_BYTES
    cdef Block *block
    if size > (<size_t>1 << 62):
        return NULL
    if head + size > total:
        total = head + size
    block = <Block *>spill_take(arena.spill, total)
    if block == NULL:
        return NULL
    block.older = arena.block
    block.used = head + size
    block.size = total
    arena.block = block
    return <char *>block + head


cdef void arena_free(Arena *arena) noexcept nogil:
    cdef Block *older
    while arena.block != NULL:
        older = arena.block.older
        spill_give(arena.spill, arena.block)
        arena.block = older


cdef int buffer_grow(Buffer *buffer, size_t extra) noexcept nogil:
    cdef size_t cap = buffer.cap * 2 if buffer.cap else FIRST_BYTES
    cdef char *data
    if extra > (<size_t>1 << 62):
        return -1
    if cap < buffer.len + extra:
        cap = buffer.len + extra
    data = <char *>realloc(buffer.data, cap + ETRACE_PAD)
    if data == NULL:
        return -1
    memset(data + cap, 0, ETRACE_PAD)
    buffer.data = data
    buffer.cap = cap
    return 0


cdef void buffer_free(Buffer *buffer) noexcept nogil:
    free(buffer.data)
    memset(buffer, 0, sizeof(buffer[0]))


cdef int buffer_add(Buffer *buffer, const void *bytes, size_t size) noexcept nogil:
    if buffer_reserve(buffer, size) < 0:
        return -1
    if size:
        memcpy(buffer.data + buffer.len, bytes, size)
    buffer.len += size
    return 0
