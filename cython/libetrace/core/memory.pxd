# SPDX-License-Identifier: Apache-2.0
# Two allocators: an arena whose objects stay where they are, and an array that grows.
from libetrace.core.spill cimport Spill
from libetrace.core.types cimport u64


cdef struct Block:
    Block *older
    size_t used  # bytes, this header included
    size_t size


cdef struct Arena:
    Block *block
    Spill *spill  # where blocks come from; NULL: ordinary memory


# Bytes of anything; `data` has ETRACE_PAD bytes beyond `cap`.
cdef struct Buffer:
    char *data
    size_t len
    size_t cap


cdef void *arena_new_block(Arena *arena, size_t size) noexcept nogil
cdef void arena_free(Arena *arena) noexcept nogil

# `size` bytes, not zeroed, aligned to 8; NULL when there is no memory.
cdef inline void *arena_take(Arena *arena, size_t size) noexcept nogil:
    cdef Block *block = arena.block
    cdef void *taken
    size = (size + 7) & ~<size_t>7
    if block != NULL and block.size - block.used >= size:
        taken = <char *>block + block.used
        block.used += size
        return taken
    return arena_new_block(arena, size)


# Room for `extra` more bytes; -1 when there is no memory.
cdef int buffer_grow(Buffer *buffer, size_t extra) noexcept nogil
cdef void buffer_free(Buffer *buffer) noexcept nogil
cdef int buffer_add(Buffer *buffer, const void *bytes, size_t size) noexcept nogil

cdef inline int buffer_reserve(Buffer *buffer, size_t extra) noexcept nogil:
    if buffer.cap - buffer.len >= extra:
        return 0
    return buffer_grow(buffer, extra)
