# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Follows the descriptors of pipes through forks, copies, closes and execs.

The rules are in docs/nfsdb-json.md. A table of descriptors (trace.pipe_tables) is simulated once,
from the fork that made it. A trace that makes this long is given up (and told of).
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from libetrace.trace.events cimport (
    ETRACE_EV_CLOSE, ETRACE_EV_DUP, ETRACE_EV_EXIT, ETRACE_EV_NEW_PROC, ETRACE_EV_OPEN, ETRACE_EV_PIPE,
    ETRACE_EV_SCHED_FORK,
)
from libetrace.trace.thread_groups cimport Step, group_steps
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.trace.pipe_edges cimport cross_users, keep_edges
from libetrace.trace.pipe_tables cimport (
    READ_END, WRITE_END, Held, Member, Offer, Pipe, Pipes, Table, View, close_fd, copy_fd, fill_table,
    free_tables, hold, is_alone, make_pipe, new_table, note_user, open_fd, pipe_of, spare_tables,
)
from libetrace.trace.event_model cimport CLOEXEC, Event
from libetrace.core.spill cimport spill_drop_all
from libetrace.trace.report cimport TOO_MANY_PIPES, report_add
from libetrace.trace.trace cimport NO_PROCESS, Process, Trace, find_process
from libetrace.core.types cimport u8, u32, u64

cdef enum:
    WORK_PER_EVENT = 16
    WORK_FREE = 1 << 20
    PROCESSES_A_DROP = 1 << 12


# The first event of a process, or the fork that shares its parent's table.
cdef int start(Pipes *pipes, u32 process, Table *shared) noexcept nogil:
    cdef Member *member = &pipes.members[process]
    if member.table != NULL:
        return 0
    member.table = shared
    if shared != NULL:
        shared.is_shared = True
        shared.n_members += 1
    else:
        member.table = new_table(pipes, process)
        if member.table == NULL:
            return -1
        if member.n_inherited and fill_table(
                pipes, member.table, <Held *>pipes.snapshots.data + member.inherited,
                member.n_inherited) < 0:
            return -1
    member.n_inherited = 0
    member.since = pipes.step
    pipes.step += 1
    return 0


# The execution ends: which ends has it held alone?
cdef int end_execution(Pipes *pipes, u32 process, bint executes) noexcept nogil:
    cdef const Buffer *views = &pipes.members[process].table.views
    cdef size_t i
    cdef int end
    pipes.work += views.len / sizeof(View)
    for i in range(views.len / sizeof(View)):
        for end in range(2):
            if note_user(pipes, process, &(<View *>views.data)[i], end, executes) < 0:
                return -1
    return 0


# A make gives both ends of its jobserver to every command; nobody does that with a pipe for data.
cdef void note_jobservers(Pipes *pipes, const Table *table) noexcept nogil:
    cdef const View *views = <const View *>table.views.data
    cdef size_t i
    for i in range(table.views.len / sizeof(View)):
        if views[i].n[READ_END] and views[i].n[WRITE_END]:
            pipe_of(pipes, views[i].pipe).is_jobserver = True


# The process is gone; what comes after its Exit, if damage brings something, begins with nothing.
cdef int end_process(Pipes *pipes, u32 process) noexcept nogil:
    cdef Member *member = &pipes.members[process]
    if end_execution(pipes, process, False) < 0:
        return -1
    member.table.n_members -= 1
    member.table = NULL
    member.has_ended = True
    return 0


# The table after an exec: without closed descriptors; a copy if it was shared.
cdef int execute(Pipes *pipes, u32 process) noexcept nogil:
    cdef Member *member = &pipes.members[process]
    cdef Table *old = member.table
    cdef const Held *held = <const Held *>old.held.data
    cdef size_t i
    if end_execution(pipes, process, True) < 0:
        return -1
    if not old.held.len and not old.is_shared:
        old.views.len = 0
        member.index += 1
        return 0
    member.index += 1
    member.table = new_table(pipes, process)
    if member.table == NULL:
        return -1
    old.n_members -= 1
    for i in range(old.held.len / sizeof(Held)):
        if not held[i].is_cloexec and held[i].closed_by != process + 1 \
                and hold(pipes, member.table, &held[i]) < 0:
            return -1
    note_jobservers(pipes, member.table)
    member.since = pipes.step
    pipes.step += 1
    if not old.n_members:
        old.held.len = 0
        old.views.len = 0
    return 0


# Notes the ends that the execution has made and holds alone as it forks the child.
cdef int add_offers(Pipes *pipes, Table *table, u32 process, Member *child) noexcept nogil:
    cdef const View *views = <const View *>table.views.data
    cdef const Pipe *pipe
    cdef Offer offer
    cdef size_t i
    cdef int end
    child.offers = <u32>(pipes.offers.len / sizeof(Offer))
    pipes.work += table.views.len / sizeof(View)
    for i in range(table.views.len / sizeof(View)):
        pipe = pipe_of(pipes, views[i].pipe)
        if pipe.process != process or pipe.index != pipes.members[process].index:
            continue
        offer.pipe = views[i].pipe
        for end in range(2):
            offer.end = <u8>end
            if is_alone(&views[i], end) and buffer_add(&pipes.offers, &offer, sizeof(offer)) < 0:
                return -1
    child.n_offers = <u32>(pipes.offers.len / sizeof(Offer)) - child.offers
    return 0


cdef int fork_table(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil:
    cdef u32 child = find_process(pipes.trace, event.payload.number)
    cdef Process *made
    cdef Member *member
    if child == NO_PROCESS or pipes.trace.processes[child].fork_event != event:
        return 0
    made = &pipes.trace.processes[child]
    member = &pipes.members[child]
    if not made.inherits:
        return 0
    if add_offers(pipes, table, process, member) < 0:
        return -1
    if made.shares_files:
        return start(pipes, child, table)
    member.inherited = <u32>(pipes.snapshots.len / sizeof(Held))
    member.n_inherited = <u32>(table.held.len / sizeof(Held))
    pipes.work += member.n_inherited
    if buffer_add(&pipes.snapshots, table.held.data, table.held.len) < 0:
        return -1
    return buffer_add(&pipes.waiting, &child, sizeof(child))


cdef int take_step(Pipes *pipes, u32 process, const Event *event) noexcept nogil:
    cdef Table *table
    if start(pipes, process, NULL) < 0:
        return -1
    table = pipes.members[process].table
    pipes.step += 1
    if event.kind == ETRACE_EV_SCHED_FORK:
        return fork_table(pipes, table, process, event)
    if event.kind == ETRACE_EV_NEW_PROC:
        return execute(pipes, process)
    if event.kind == ETRACE_EV_PIPE:
        return make_pipe(pipes, table, process, event)
    if event.kind == ETRACE_EV_OPEN:
        return open_fd(pipes, table, process, event)
    if event.kind == ETRACE_EV_DUP:
        return copy_fd(pipes, table, process, event.fd, event.fd2, event.access & CLOEXEC != 0)
    if event.kind == ETRACE_EV_CLOSE:
        return close_fd(pipes, table, process, event)
    if event.kind == ETRACE_EV_EXIT:
        return end_process(pipes, process)
    return 0


# Processes without an Exit hold their descriptors to the end.
cdef int end_members(Pipes *pipes, u32 group) noexcept nogil:
    cdef u32 number = group
    while number != NO_PROCESS:
        if not pipes.members[number].has_ended or pipes.members[number].table != NULL:
            if start(pipes, number, NULL) < 0 or end_execution(pipes, number, False) < 0:
                return -1
        number = pipes.trace.processes[number].next_in_group
    return 0


cdef int take_steps(Pipes *pipes, u32 group, const Buffer *steps) noexcept nogil:
    cdef const Step *step = <const Step *>steps.data
    cdef size_t i
    for i in range(steps.len / sizeof(Step)):
        if take_step(pipes, step[i].process, step[i].event) < 0:
            return -1
        if pipes.work > pipes.budget:
            return 0
    return end_members(pipes, group)


cdef int take_group(Pipes *pipes, u32 group, Buffer *steps) noexcept nogil:
    cdef Process *process = &pipes.trace.processes[group]
    cdef bint is_several = process.next_in_group != NO_PROCESS
    cdef int status
    if group % PROCESSES_A_DROP == 0:
        spill_drop_all(&pipes.trace.spill)
    if group_steps(pipes.trace, group, not is_several, steps) < 0:
        return -1
    status = take_steps(pipes, group, steps)
    spare_tables(pipes)
    return status


# Whether some member begins with a copy of another group's table.
cdef bint has_outer_parent(const Trace *trace, u32 group) noexcept nogil:
    cdef u32 number = group
    cdef const Process *process
    while number != NO_PROCESS:
        process = &trace.processes[number]
        if process.inherits and trace.processes[process.parent].group != group:
            return True
        number = process.next_in_group
    return False


# A group and those that it has forked, and so on.
cdef int take_tree(Pipes *pipes, u32 group, Buffer *steps) noexcept nogil:
    cdef Process *processes = pipes.trace.processes
    if take_group(pipes, group, steps) < 0:
        return -1
    while pipes.waiting.len and pipes.work <= pipes.budget:
        pipes.waiting.len -= sizeof(u32)
        group = processes[(<u32 *>(pipes.waiting.data + pipes.waiting.len))[0]].group
        if take_group(pipes, group, steps) < 0:
            return -1
    pipes.snapshots.len = 0
    pipes.offers.len = 0
    return 0


# Who inherits comes after the fork in time, so that every group hangs from one without a parent.
cdef int take_groups(Pipes *pipes, Buffer *steps) noexcept nogil:
    cdef u32 i
    for i in range(pipes.trace.n_processes):
        if pipes.work > pipes.budget:
            return 0
        if pipes.trace.processes[i].group == i and not has_outer_parent(pipes.trace, i) \
                and take_tree(pipes, i, steps) < 0:
            return -1
    return 0


cdef int link_all(Pipes *pipes, Buffer *steps, Buffer *edges) noexcept nogil:
    if take_groups(pipes, steps) < 0 or cross_users(pipes, edges) < 0:
        return -1
    if pipes.work > pipes.budget:
        report_add(&pipes.trace.report, TOO_MANY_PIPES, 0, 1)
        edges.len = 0
    return 0


cdef u64 count_events(const Trace *trace) noexcept nogil:
    cdef u64 n = 0
    cdef u32 i
    for i in range(trace.n_processes):
        n += trace.processes[i].n_events
    return n


cdef void free_pipes(Pipes *pipes) noexcept nogil:
    free_tables(&pipes.tables)
    free_tables(&pipes.spare)
    free(pipes.members)
    buffer_free(&pipes.pipes)
    buffer_free(&pipes.users[READ_END])
    buffer_free(&pipes.users[WRITE_END])
    buffer_free(&pipes.snapshots)
    buffer_free(&pipes.waiting)
    buffer_free(&pipes.offers)


cdef int link_pipes(Trace *trace) noexcept nogil:
    cdef Pipes pipes
    cdef Buffer steps
    cdef Buffer edges
    cdef size_t size = (<size_t>trace.n_processes + 1) * sizeof(Member)
    cdef int status
    memset(&pipes, 0, sizeof(pipes))
    memset(&steps, 0, sizeof(steps))
    memset(&edges, 0, sizeof(edges))
    pipes.trace = trace
    pipes.step = 1
    pipes.budget = WORK_FREE + WORK_PER_EVENT * count_events(trace)
    pipes.members = <Member *>malloc(size)
    if pipes.members == NULL:
        return -1
    memset(pipes.members, 0, size)
    status = link_all(&pipes, &steps, &edges)
    free_pipes(&pipes)
    buffer_free(&steps)
    if status < 0:
        buffer_free(&edges)
        return -1
    keep_edges(trace, &edges)
    return 0
