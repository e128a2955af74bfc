# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory that may be written to a file, so that resident memory is bounded.

The file is mapped as a whole, far beyond its end; it grows as memory is taken. A page that was let
go is in the page cache or in the file, from where it comes back when it is touched.
"""
from libc.errno cimport EFBIG
from libc.stdlib cimport free, malloc

from libetrace.core.scan cimport ETRACE_PAD, etrace_claim, etrace_peek

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
