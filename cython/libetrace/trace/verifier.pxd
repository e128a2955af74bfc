# SPDX-License-Identifier: Apache-2.0
# Order, pairs, executions and forks of each process; the files that it inherited.
from libetrace.core.memory cimport Arena, Buffer
from libetrace.core.types cimport u8, u32, u64
from libetrace.trace.trace cimport Event, Trace, Wanted

cdef enum:
    N_DESCRIPTORS = 64  # from 0 on; those beyond are not followed
    MAX_FORKS = 255  # through which a file is followed


# The file of a descriptor: an Open of its own upid, or descriptor `source` at the upid's start.
cdef struct Slot:
    const Event *opened  # NULL: inherited
    u8 source
    bint is_cloexec
    bint has_survived  # an exec, before it was copied: `source` must not close on exec


# Descriptors of one upid as its events go by; one that no event has touched is as it began.
cdef struct Follower:
    Slot slots[N_DESCRIPTORS]
    u64 touched
    u64 filled  # of those touched, the ones that are not closed
    bint has_executed


# Descriptors at a SchedFork, whose `fd` is the number of its snapshot in the process.
cdef struct Snapshot:
    u64 touched
    u64 filled
    Slot *slots  # of the filled ones, in order
    bint has_executed


cdef inline void follower_init(Follower *follower) noexcept nogil:
    follower.touched = follower.filled = 0
    follower.has_executed = False


# An Open, Close, Dup or Pipe.
cdef void follow(Follower *follower, const Event *event) noexcept nogil
# The Open of an inherited descriptor; NULL when it is closed, not a file, or opened before the
# trace.
cdef const Event *find_inherited(const Trace *trace, u32 process, const Wanted *wanted) noexcept nogil
# Verifies processes until none is left; called by every thread. -1 when there is no memory.
cdef int verify_processes(Trace *trace, unsigned int worker) noexcept nogil
