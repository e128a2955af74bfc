# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory of nogil code: an arena, a growing array, and a file that bounds what is resident.

The file is mapped as a whole, far beyond its end; it grows as memory is taken. A page that was let
go is in the page cache or in the file, from where it comes back when it is touched.
"""
from libc.errno cimport EFBIG
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from libetrace.core.scan cimport (
    ETRACE_BLOCK_BYTES, ETRACE_GROWN_BLOCK_BYTES, ETRACE_PAD, etrace_claim, etrace_peek,
)

cdef extern from "<fcntl.h>" nogil:
    int posix_fallocate(int fd, long long offset, long long len)

cdef extern from "<sys/mman.h>" nogil:
    enum: PROT_READ, PROT_WRITE, MAP_SHARED, MAP_NORESERVE, MADV_DONTNEED
    void *MAP_FAILED
    void *mmap(void *at, size_t size, int protection, int flags, int fd, long long offset)
    int munmap(void *at, size_t size)
    int madvise(void *at, size_t size, int advice)

cdef enum:
    PAGE_BYTES = 4096

cdef u64 MAPPED_BYTES = <u64>1 << 42


cdef void spill_init(Spill *spill, int fd, u64 budget) noexcept nogil:
    cdef void *base
    spill.fd = -1
    spill.budget = budget
    spill.taken = spill.size = spill.error = 0
    spill.base = NULL
    if fd < 0:
        return
    base = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
    if base == MAP_FAILED:
        return
    spill.base = <char *>base
    spill.fd = fd


cdef void spill_free(Spill *spill) noexcept nogil:
    if spill.base != NULL:
        munmap(spill.base, MAPPED_BYTES)
    spill.base = NULL
    spill.fd = -1


cdef void *take_from_file(Spill *spill, u64 size) noexcept nogil:
    cdef u64 offset
    cdef int error
    size = (size + ETRACE_PAD + PAGE_BYTES - 1) & ~<u64>(PAGE_BYTES - 1)
    offset = etrace_claim(&spill.size, size)
    error = posix_fallocate(spill.fd, offset, size) if offset + size <= MAPPED_BYTES else EFBIG
    if error:
        spill.error = <u64>error
        return NULL
    return spill.base + offset


cdef void *spill_take(Spill *spill, u64 size) noexcept nogil:
    if spill == NULL or spill.fd < 0 or etrace_claim(&spill.taken, size) + size <= spill.budget:
        return malloc(size + ETRACE_PAD)
    return take_from_file(spill, size)


cdef bint is_spilled(const Spill *spill, const void *taken) noexcept nogil:
    return (spill != NULL and spill.base != NULL and <const char *>taken >= spill.base
            and <const char *>taken < spill.base + MAPPED_BYTES)


cdef void spill_give(const Spill *spill, void *taken) noexcept nogil:
    if not is_spilled(spill, taken):
        free(taken)


cdef void spill_drop(const Spill *spill, void *taken, u64 size) noexcept nogil:
    if is_spilled(spill, taken):
        madvise(taken, size, MADV_DONTNEED)


cdef void spill_drop_all(const Spill *spill) noexcept nogil:
    cdef u64 size = etrace_peek(&spill.size)
    if size:
        madvise(spill.base, size, MADV_DONTNEED)


# ---- arenas and arrays ----


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


# Room for `extra` more bytes; -1 when there is no memory.
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
