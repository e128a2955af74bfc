# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Threads: a Close in one ends the Open of another, so their events are taken in one order.

A table is shared from the fork on; an exec takes a member and what it has opened itself out of it.
"""
from libc.stdlib cimport calloc, free, malloc, qsort

from libetrace.descriptors cimport (
    Descriptors, OpenFile, apply_event, descriptors_add, descriptors_end, descriptors_free,
    descriptors_init, descriptors_remove,
)
from libetrace.events cimport ETRACE_EV_NEW_PROC, ETRACE_EV_SCHED_FORK
from libetrace.memory cimport buffer_add, buffer_free
from libetrace.trace cimport NO_PROCESS, Process, compare_events, find_process
from libetrace.types cimport s64, u64
from libc.string cimport memset


cdef struct Shared:
    Descriptors table
    u32 n_members  # started and not ended
    Shared *older  # of all tables of the group


cdef struct Member:
    Shared *shared  # NULL before the process has started
    Event *before
    u32 index


cdef struct Group:
    Trace *trace
    Buffer *records
    Shared *tables
    Member *members  # by process


cdef int compare_steps(const void *a, const void *b) noexcept nogil:
    return compare_events((<const Step *>a).event, (<const Step *>b).event)


cdef int member_steps(const Process *process, u32 number, bint pipes_only,
                      Buffer *steps) noexcept nogil:
    cdef Step step
    cdef u32 i
    step.process = number
    if pipes_only:
        for i in range(process.n_pipe_events):
            step.event = process.pipe_events[i]
            if buffer_add(steps, &step, sizeof(step)) < 0:
                return -1
        return 0
    step.event = process.first
    while step.event != NULL:
        if buffer_add(steps, &step, sizeof(step)) < 0:
            return -1
        step.event = step.event.next
    return 0


cdef int group_steps(const Trace *trace, u32 group, bint pipes_only,
                     Buffer *steps) noexcept nogil:
    cdef u32 number = group
    cdef u32 n_members = 0
    steps.len = 0
    while number != NO_PROCESS:
        if member_steps(&trace.processes[number], number, pipes_only, steps) < 0:
            return -1
        n_members += 1
        number = trace.processes[number].next_in_group
    if n_members > 1 and steps.len:
        qsort(steps.data, steps.len / sizeof(Step), sizeof(Step), compare_steps)
    return 0


cdef Shared *new_table(Group *group) noexcept nogil:
    cdef Shared *shared = <Shared *>calloc(1, sizeof(Shared))
    if shared == NULL:
        return NULL
    if descriptors_init(&shared.table, group.trace.seed, group.records, True) < 0:
        free(shared)
        return NULL
    shared.older = group.tables
    group.tables = shared
    return shared


cdef int start(Group *group, u32 number) noexcept nogil:
    cdef Process *process = &group.trace.processes[number]
    cdef Member *member = &group.members[number]
    cdef Shared *shared = NULL
    if member.shared != NULL:
        return 0
    if process.shares_files:
        shared = group.members[process.parent].shared
    if shared == NULL:
        shared = new_table(group)
    if shared == NULL:
        return -1
    shared.n_members += 1
    member.shared = shared
    return 0


cdef int leave(Member *member, s64 time) noexcept nogil:
    member.shared.n_members -= 1
    return descriptors_end(&member.shared.table, time) if not member.shared.n_members else 0


# An exec gives the process a table of its own, with what it has opened.
cdef int unshare(Group *group, u32 number) noexcept nogil:
    cdef Member *member = &group.members[number]
    cdef Shared *old = member.shared
    cdef Shared *own
    cdef u32 i = 0
    if old.n_members == 1:
        return 0
    own = new_table(group)
    if own == NULL:
        return -1
    while i <= old.table.mask:
        if old.table.slots[i].is_used and old.table.slots[i].process == number:
            if descriptors_add(&own.table, &old.table.slots[i]) < 0:
                return -1
            descriptors_remove(&old.table, &old.table.slots[i])
        else:
            i += 1
    own.table.n_opens = old.table.n_opens
    own.n_members = 1
    old.n_members -= 1
    member.shared = own
    return 0


cdef int start_child(Group *group, const Event *event) noexcept nogil:
    cdef u32 child = find_process(group.trace, event.payload.number)
    if child == NO_PROCESS or group.trace.processes[child].fork_event != event:
        return 0
    return start(group, child) if group.trace.processes[child].shares_files else 0


cdef int take_step(Group *group, const Step *step) noexcept nogil:
    cdef Event *event = step.event
    cdef Member *member = &group.members[step.process]
    if start(group, step.process) < 0:
        return -1
    if event.kind == ETRACE_EV_NEW_PROC:
        member.index += 1
        if unshare(group, step.process) < 0:
            return -1
    elif event.kind == ETRACE_EV_SCHED_FORK:
        if start_child(group, event) < 0:
            return -1
    elif apply_event(group.trace, &member.shared.table, step.process, member.index, event,
                     member.before) < 0:
        return -1
    member.before = event
    if event == group.trace.processes[step.process].last:
        return leave(member, event.time)
    return 0


cdef int take_steps(Group *group, const Buffer *steps) noexcept nogil:
    cdef const Step *step = <const Step *>steps.data
    cdef size_t i
    for i in range(steps.len / sizeof(Step)):
        if take_step(group, &step[i]) < 0:
            return -1
    return 0


cdef void free_tables(Group *group) noexcept nogil:
    cdef Shared *older
    while group.tables != NULL:
        older = group.tables.older
        descriptors_free(&group.tables.table)
        free(group.tables)
        group.tables = older


cdef bint has_groups(const Trace *trace) noexcept nogil:
    cdef u32 i
    for i in range(trace.n_processes):
        if trace.processes[i].next_in_group != NO_PROCESS:
            return True
    return False


cdef int group_records(Trace *trace, Buffer *records) noexcept nogil:
    cdef Group group
    cdef Buffer steps
    cdef int status = 0
    cdef u32 i
    memset(&group, 0, sizeof(group))
    memset(&steps, 0, sizeof(steps))
    group.trace = trace
    group.records = records
    group.members = <Member *>calloc(<size_t>trace.n_processes + 1, sizeof(Member))
    if group.members == NULL:
        return -1
    for i in range(trace.n_processes):
        if trace.processes[i].group != i or trace.processes[i].next_in_group == NO_PROCESS:
            continue
        status = group_steps(trace, i, False, &steps)
        if status == 0:
            status = take_steps(&group, &steps)
        free_tables(&group)
        if status < 0:
            break
    buffer_free(&steps)
    free(group.members)
    return status
