# SPDX-License-Identifier: Apache-2.0
# Memory beyond a budget lies in a temporary file: the kernel may take its pages back.
from libetrace.core.types cimport u64


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
