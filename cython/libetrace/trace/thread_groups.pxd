# SPDX-License-Identifier: Apache-2.0
# Upids that share descriptor tables, their events in one order of time.
from libetrace.core.memory cimport Buffer
from libetrace.trace.trace cimport Event, Trace
from libetrace.core.types cimport u32


cdef struct Step:
    Event *event
    u32 process


# Steps of all members of a group, into `steps`; `pipes_only` leaves out what cannot touch a pipe.
# -1 when there is no memory.
cdef int group_steps(const Trace *trace, u32 group, bint pipes_only, Buffer *steps) noexcept nogil
# Records of the files of every group with several members, into `records` by process.
cdef int group_records(Trace *trace, Buffer *records) noexcept nogil
cdef bint has_groups(const Trace *trace) noexcept nogil
