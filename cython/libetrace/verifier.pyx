# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One pass over the events of a process: what is out of order is sorted, what lacks its other half goes.

Leaves a chain of live events, the commands of the executions, the forks, and the list of events that
the pass over pipes has to look at, which is short.
"""
from libc.stdlib cimport free, malloc, qsort

from libetrace.events cimport (
    ETRACE_EV_CLOSE, ETRACE_EV_DUP, ETRACE_EV_EXIT, ETRACE_EV_LINK_FAILED, ETRACE_EV_LINK_FROM,
    ETRACE_EV_LINK_TO, ETRACE_EV_LINKAT_FROM, ETRACE_EV_MOUNT, ETRACE_EV_MOUNT_FAILED,
    ETRACE_EV_NEW_PROC, ETRACE_EV_OPEN, ETRACE_EV_PIPE, ETRACE_EV_RENAME2FROM,
    ETRACE_EV_RENAME_FAILED, ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME_TO, ETRACE_EV_SCHED_FORK,
    ETRACE_EV_SYS_CLONE, ETRACE_EV_SYS_CLONE_FAILED, ETRACE_EV_UMOUNT, ETRACE_EV_UMOUNT_FAILED,
)
from libetrace.memory cimport Buffer, arena_take, buffer_add, buffer_free
from libetrace.records cimport DEAD, REOPENS_PIPE, Event, Program
from libetrace.report cimport NO_FOLLOWER, NO_LEADER, report_add
from libetrace.scan cimport etrace_take
from libetrace.trace cimport Claim, Process, Worker, compare_events, event_line
from libetrace.types cimport s32, s64, u8, u32, u64
from libc.string cimport memcpy, memset

cdef enum:
    STEP = 64  # processes taken at a time


cdef int compare_places(const void *a, const void *b) noexcept nogil:
    return compare_events((<Event **>a)[0], (<Event **>b)[0])


cdef int sort_events(Process *process) noexcept nogil:
    cdef Event *event = process.first
    cdef Event **sorted_events
    cdef u64 n = 0
    cdef u64 i
    while event != NULL:
        n += 1
        event = event.next
    sorted_events = <Event **>malloc(n * sizeof(Event *))
    if sorted_events == NULL:
        return -1
    event = process.first
    for i in range(n):
        sorted_events[i] = event
        event = event.next
    qsort(sorted_events, n, sizeof(Event *), compare_places)
    for i in range(n):
        sorted_events[i].next = sorted_events[i + 1] if i + 1 < n else NULL
    process.first = sorted_events[0]
    process.last = sorted_events[n - 1]
    free(sorted_events)
    return 0


# Whether `b` can be the other half of `a`.
cdef bint leads(u8 a, u8 b) noexcept nogil:
    if a == ETRACE_EV_SYS_CLONE:
        return b in (ETRACE_EV_SCHED_FORK, ETRACE_EV_SYS_CLONE_FAILED)
    if a in (ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME2FROM):
        return b in (ETRACE_EV_RENAME_TO, ETRACE_EV_RENAME_FAILED)
    if a in (ETRACE_EV_LINK_FROM, ETRACE_EV_LINKAT_FROM):
        return b in (ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED)
    return a == ETRACE_EV_MOUNT and b == ETRACE_EV_MOUNT_FAILED


cdef bint needs_leader(u8 kind) noexcept nogil:
    return kind in (ETRACE_EV_SYS_CLONE_FAILED, ETRACE_EV_RENAME_TO, ETRACE_EV_LINK_TO,
                    ETRACE_EV_MOUNT_FAILED)


cdef bint needs_follower(u8 kind) noexcept nogil:
    return kind in (ETRACE_EV_SYS_CLONE, ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME2FROM,
                    ETRACE_EV_LINK_FROM, ETRACE_EV_LINKAT_FROM)


cdef void remove(Trace *trace, Worker *worker, Event *event, int problem) noexcept nogil:
    report_add(&worker.report, problem, event_line(trace, event), 1)
    event.kind = DEAD


# Chains the live events again, less those whose other half is missing.
cdef void verify_pairs(Trace *trace, Worker *worker, Process *process) noexcept nogil:
    cdef Event *event = process.first
    cdef Event *following
    cdef Event *before = NULL  # last event kept, and the one kept before it
    cdef Event *earlier = NULL
    process.first = NULL
    while event != NULL:
        following = event.next
        if event.kind == DEAD:
            pass
        elif needs_leader(event.kind) and (before == NULL or not leads(before.kind, event.kind)):
            remove(trace, worker, event, NO_LEADER)
        else:
            if before != NULL and needs_follower(before.kind) \
                    and not leads(before.kind, event.kind):
                remove(trace, worker, before, NO_FOLLOWER)
                before = earlier
            if before == NULL:
                process.first = event
            else:
                before.next = event
            earlier = before
            before = event
        event = following
    if before != NULL and needs_follower(before.kind):
        remove(trace, worker, before, NO_FOLLOWER)
        before = earlier
    if before == NULL:
        process.first = NULL
    else:
        before.next = NULL
    process.last = before


cdef int add_claim(Trace *trace, Worker *worker, Process *process, Event *event,
                   const Event *before) noexcept nogil:
    cdef Claim claim
    claim.child = event.payload.number
    claim.event = event
    claim.flags = 0
    if before != NULL and before.kind == ETRACE_EV_SYS_CLONE:
        claim.flags = <u64>before.payload.number
    claim.parent = <u32>(process - trace.processes)
    claim.index = process.n_programs
    return buffer_add(&worker.claims, &claim, sizeof(claim))


# Descriptors below 64 that certainly hold no pipe: most opens and closes need not be looked at again.
cdef inline bint is_clean(u64 clean, s32 fd) noexcept nogil:
    return 0 <= fd < 64 and clean >> fd & 1


cdef inline u64 with_bit(u64 clean, s32 fd, bint value) noexcept nogil:
    if not 0 <= fd < 64:
        return clean
    return clean | <u64>1 << fd if value else clean & ~(<u64>1 << fd)


# Whether the event can change which pipes are held; keeps the set of clean descriptors.
cdef inline bint touches_pipes(const Event *event, u64 *clean) noexcept nogil:
    cdef bint was_clean
    if event.kind in (ETRACE_EV_OPEN, ETRACE_EV_CLOSE):
        was_clean = is_clean(clean[0], event.fd) and not event.access & REOPENS_PIPE
        clean[0] = with_bit(clean[0], event.fd, not event.access & REOPENS_PIPE)
        return not was_clean
    if event.kind == ETRACE_EV_PIPE:
        clean[0] = with_bit(with_bit(clean[0], event.fd, False), event.fd2, False)
        return True
    if event.kind == ETRACE_EV_DUP:
        was_clean = is_clean(clean[0], event.fd) and is_clean(clean[0], event.fd2)
        clean[0] = with_bit(clean[0], event.fd2, is_clean(clean[0], event.fd))
        return not was_clean
    return event.kind in (ETRACE_EV_SCHED_FORK, ETRACE_EV_NEW_PROC)


# Executions, forks and the events of pipes, in order.
cdef int collect(Trace *trace, Worker *worker, Process *process, Buffer *programs,
                 Buffer *pipe_events) noexcept nogil:
    cdef Event *event = process.first
    cdef Event *before = NULL
    cdef u64 clean = 0
    while event != NULL:
        process.n_events += 1
        if event.kind == ETRACE_EV_NEW_PROC:
            process.n_programs += 1
            if buffer_add(programs, &event.payload.program, sizeof(Program *)) < 0:
                return -1
        elif event.kind == ETRACE_EV_SCHED_FORK:
            if add_claim(trace, worker, process, event, before) < 0:
                return -1
        elif event.kind == ETRACE_EV_EXIT:
            process.has_exit = True
            process.exit_status = <u64>event.payload.number
        if touches_pipes(event, &clean) and buffer_add(pipe_events, &event, sizeof(event)) < 0:
            return -1
        before = event
        event = event.next
    return 0


cdef int verify_process(Trace *trace, Worker *worker, Process *process, Buffer *programs,
                        Buffer *pipe_events) noexcept nogil:
    if process.is_unsorted and sort_events(process) < 0:
        return -1
    verify_pairs(trace, worker, process)
    programs.len = 0
    pipe_events.len = 0
    if collect(trace, worker, process, programs, pipe_events) < 0:
        return -1
    process.programs = <Program **>arena_take(&worker.arena, programs.len)
    process.pipe_events = <Event **>arena_take(&worker.arena, pipe_events.len)
    if process.programs == NULL or process.pipe_events == NULL:
        return -1
    if programs.len:
        memcpy(process.programs, programs.data, programs.len)
    if pipe_events.len:
        memcpy(process.pipe_events, pipe_events.data, pipe_events.len)
    process.n_pipe_events = <u32>(pipe_events.len / sizeof(Event *))
    return 0


cdef int verify_processes(Trace *trace, unsigned int worker) noexcept nogil:
    cdef Buffer programs
    cdef Buffer pipe_events
    cdef u64 i
    cdef u64 end
    cdef int status = 0
    memset(&programs, 0, sizeof(programs))
    memset(&pipe_events, 0, sizeof(pipe_events))
    while status == 0 and not trace.cancelled:
        i = etrace_take(&trace.taken) * STEP
        if i >= trace.n_processes:
            break
        end = min(i + STEP, <u64>trace.n_processes)
        while status == 0 and i < end:
            status = verify_process(trace, &trace.workers[worker], &trace.processes[i], &programs,
                                    &pipe_events)
            i += 1
    buffer_free(&programs)
    buffer_free(&pipe_events)
    return status
