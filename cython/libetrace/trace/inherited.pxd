# SPDX-License-Identifier: Apache-2.0
# Files that an execution begins with as descriptors 0 to 2, opened by another upid.
from libetrace.core.memory cimport Arena, Buffer
from libetrace.trace.event_model cimport Event
from libetrace.trace.trace cimport Trace, Wanted
from libetrace.core.types cimport u8, u32, u64

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
cdef void follow_exec(Follower *follower) noexcept nogil
# Appends a Snapshot to `snapshots`; -1: no memory.
cdef int follow_fork(Follower *follower, Event *fork, Arena *arena, Buffer *snapshots) noexcept nogil
# Appends the files that the execution has inherited as 0 to 2 to `wanted` (Wanted).
cdef int add_wanted(const Follower *follower, u32 index, Buffer *wanted) noexcept nogil
# The Open of an inherited descriptor; NULL when it is closed, not a file, or opened before the
# trace.
cdef const Event *find_inherited(const Trace *trace, u32 process, const Wanted *wanted) noexcept nogil
