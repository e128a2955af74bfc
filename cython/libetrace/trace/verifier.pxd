# SPDX-License-Identifier: Apache-2.0
# Order, pairs, executions and forks of each process; the files that it inherited.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, u32
from libetrace.trace.trace cimport Event, Trace, Wanted

cdef enum:
    N_DESCRIPTORS = 1 << 20  # from 0 on; no kernel has more by default (fs.nr_open)
    MAX_FORKS = 255  # through which a file is followed


# The file of a descriptor: an Open of its own upid, or descriptor `source` at the upid's start.
cdef struct Slot:
    const Event *opened  # NULL: inherited
    s32 source
    u32 n_execs  # of the upid before it was filled
    bint is_filled
    bint is_cloexec
    bint has_survived  # an exec, before it was copied: `source` must not close on exec


cdef struct Touched:
    s32 fd
    bint is_noted  # in `changed`
    Slot slot


# Descriptors of one upid as its events go by; one that no event has touched is as it began.
cdef struct Follower:
    Buffer places  # u32 by descriptor: its place in `touched` plus one, 0 for none
    Buffer touched  # Touched
    Buffer changed  # u32: places in `touched` of those that changed since the last fork
    u32 n_execs


# At a SchedFork, whose `fd` is the number of its snapshot in the process.
cdef struct Snapshot:
    u32 n_execs


# A descriptor from a fork on, up to the next change of it.
cdef struct Change:
    s32 fd
    u32 fork  # number of its snapshot
    Slot slot


# The Open of an inherited descriptor; NULL when it is closed, not a file, or opened before the
# trace.
cdef const Event *find_inherited(const Trace *trace, u32 process, const Wanted *wanted) noexcept nogil
# Verifies processes until none is left; called by every thread. -1 when there is no memory.
cdef int verify_processes(Trace *trace, unsigned int worker) noexcept nogil
