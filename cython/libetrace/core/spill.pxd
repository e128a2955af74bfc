# SPDX-License-Identifier: Apache-2.0
# Memory beyond a budget lies in a temporary file: the kernel may take its pages back.
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
# of any length does not lie in memory whole.
cdef inline void spill_step(const Spill *spill, u32 *n_steps) noexcept nogil:
    n_steps[0] += 1
    if not n_steps[0] & (STEPS_A_DROP - 1):
        spill_drop_all(spill)
