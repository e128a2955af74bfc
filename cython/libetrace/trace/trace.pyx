# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Questions that several passes ask of the whole trace."""
from libetrace.trace.event_model cimport DEAD
from libetrace.core.scan cimport etrace_hash64
from libetrace.core.spill cimport spill_step


cdef u32 find_process(const Trace *trace, s64 upid) noexcept nogil:
    cdef u32 at
    if trace.slots == NULL:
        return NO_PROCESS
    at = <u32>etrace_hash64(<u64>upid, trace.seed) & trace.mask
    while trace.slots[at] and trace.processes[trace.slots[at] - 1].upid != upid:
        at = (at + 1) & trace.mask
    return trace.slots[at] - 1  # NO_PROCESS for an empty slot


# Number of an event's line in the trace.
cdef u64 event_line(const Trace *trace, const Event *event) noexcept nogil:
    return trace.chunks[event.chunk].first_line + event.line


# Order by time, then place in the trace: -1, 0 or 1.
cdef int compare_events(const Event *a, const Event *b) noexcept nogil:
    if a.time != b.time:
        return -1 if a.time < b.time else 1
    if a.chunk != b.chunk:
        return -1 if a.chunk < b.chunk else 1
    if a.line != b.line:
        return -1 if a.line < b.line else 1
    return 0


cdef void drop_dead(const Trace *trace, Process *process) noexcept nogil:
    cdef Event **link = &process.first
    cdef u32 n_steps = 0
    process.last = NULL
    process.n_events = 0
    while link[0] != NULL:
        spill_step(&trace.spill, &n_steps)
        if link[0].kind == DEAD:
            link[0] = link[0].next
        else:
            process.last = link[0]
            process.n_events += 1
            link = &link[0].next
