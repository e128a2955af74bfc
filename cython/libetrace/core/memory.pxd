# SPDX-License-Identifier: Apache-2.0
# Two allocators, an arena whose objects stay where they are and an array that grows; memory beyond a
# budget is in a temporary file: the kernel may take its pages back.
from libetrace.core.types cimport u32, u64

cdef enum:
    STEPS_A_DROP = 1 << 18  # events of 48 bytes


cdef struct Spill:
    int fd  # -1: all memory is ordinary
    u64 budget  # bytes of ordinary memory
    u64 taken  # bytes so far, of both kinds
    char *base  # where the file is mapped
    u64 size  # of the file
    u64 error  # errno: why the file did not grow


# Uses the empty file `fd`, if it is one and can be mapped.
cdef void spill_init(Spill *spill, int fd, u64 budget) noexcept nogil
cdef void spill_free(Spill *spill) noexcept nogil
# Memory that is not zeroed; NULL when there is none, or no room in the file. `spill` may be NULL.
cdef void *spill_take(Spill *spill, u64 size) noexcept nogil
# Gives back ordinary memory; that in the file goes with the file.
cdef void spill_give(const Spill *spill, void *taken) noexcept nogil
cdef bint is_spilled(const Spill *spill, const void *taken) noexcept nogil
# Releases the pages of some memory, or of all; they are read again when needed.
cdef void spill_drop(const Spill *spill, void *taken, u64 size) noexcept nogil
cdef void spill_drop_all(const Spill *spill) noexcept nogil


# Called at each step of a walk along a chain: releases all pages from time to time, so that a chain
# of any length is not in memory as a whole.
cdef inline void spill_step(const Spill *spill, u32 *n_steps) noexcept nogil:
    n_steps[0] += 1
    if not n_steps[0] & (STEPS_A_DROP - 1):
        spill_drop_all(spill)


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


cdef void arena_free(Arena *arena) noexcept nogil


cdef void *arena_new_block(Arena *arena, size_t size) noexcept nogil
cdef int buffer_grow(Buffer *buffer, size_t extra) noexcept nogil

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


cdef void buffer_free(Buffer *buffer) noexcept nogil
cdef int buffer_add(Buffer *buffer, const void *bytes, size_t size) noexcept nogil


cdef inline int buffer_reserve(Buffer *buffer, size_t extra) noexcept nogil:
    if buffer.cap - buffer.len >= extra:
        return 0
    return buffer_grow(buffer, extra)
