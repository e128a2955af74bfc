# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Threads: a Close in one ends the Open of another, so their events are taken in one order.

A table is shared from the fork on; an exec gives the process a copy of it, and the first Close in any
copy ends the Open.
"""
from libc.stdlib cimport calloc, free, qsort

from libetrace.trace.descriptors cimport (
    Descriptors, OpenLog, apply_event, descriptors_add, descriptors_collect, descriptors_end,
    descriptors_free, descriptors_init,
)
from libetrace.trace.events cimport ETRACE_EV_NEW_PROC, ETRACE_EV_SCHED_FORK
from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.core.scan cimport etrace_prefetch
from libetrace.trace.trace cimport NO_PROCESS, Process, compare_events, find_process
from libc.string cimport memset


cdef struct Shared:
    Descriptors table
    u32 n_members
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
    OpenLog log


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
            etrace_prefetch(step.event)  # few and far between
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
    if descriptors_init(&shared.table, group.trace.seed, group.records, True, &group.log) < 0:
        free(shared)
        return NULL
    shared.older = group.tables
    group.tables = shared
    return shared


# The first event of a process, or the fork that shares its parent's table.
cdef int start(Group *group, u32 number, Shared *shared) noexcept nogil:
    cdef Member *member = &group.members[number]
    if member.shared != NULL:
        return 0
    member.shared = shared if shared != NULL else new_table(group)
    if member.shared == NULL:
        return -1
    member.shared.n_members += 1
    return 0


cdef int start_child(Group *group, u32 parent, const Event *event) noexcept nogil:
    cdef u32 child = find_process(group.trace, event.payload.number)
    if child == NO_PROCESS or group.trace.processes[child].fork_event != event \
            or not group.trace.processes[child].shares_files:
        return 0
    return start(group, child, group.members[parent].shared)


# An exec gives the process a copy of the table.
cdef int unshare(Group *group, Member *member) noexcept nogil:
    cdef const Descriptors *old = &member.shared.table
    cdef u32 i
    if member.shared.n_members == 1:
        return 0
    member.shared.n_members -= 1
    member.shared = new_table(group)
    if member.shared == NULL:
        return -1
    member.shared.n_members = 1
    for i in range(old.mask + 1 if old.n else 0):
        if old.slots[i].is_used and descriptors_add(&member.shared.table, &old.slots[i]) < 0:
            return -1
    return 0


cdef int take_step(Group *group, const Step *step) noexcept nogil:
    cdef Event *event = step.event
    cdef Member *member = &group.members[step.process]
    if start(group, step.process, NULL) < 0:
        return -1
    if event.kind == ETRACE_EV_NEW_PROC:
        member.index += 1
        if unshare(group, member) < 0:
            return -1
    elif event.kind == ETRACE_EV_SCHED_FORK:
        if start_child(group, step.process, event) < 0:
            return -1
    elif apply_event(group.trace, &member.shared.table, step.process, member.index, event,
                     member.before) < 0:
        return -1
    member.before = event
    return 0


cdef int end_steps(Group *group, Buffer *files) noexcept nogil:
    cdef Shared *shared = group.tables
    files.len = 0
    while shared != NULL:
        if descriptors_collect(&shared.table, files) < 0:
            return -1
        shared = shared.older
    if group.tables == NULL:
        return 0
    return descriptors_end(group.trace, &group.tables.table, files)


cdef int take_steps(Group *group, Buffer *steps) noexcept nogil:
    cdef const Step *step = <const Step *>steps.data
    cdef size_t i
    group.log.n_opens = 0
    group.log.ended.len = 0
    for i in range(steps.len / sizeof(Step)):
        if take_step(group, &step[i]) < 0:
            return -1
    return end_steps(group, steps)


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
    group.log.has_copies = True
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
    buffer_free(&group.log.ended)
    free(group.members)
    return status
