# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Pipe links: from an execution that wrote a pipe to those that could read it.

Descriptors of pipes are followed through forks, copies, closes and execs by the rules of
docs/nfsdb-json.md. A table of descriptors (trace.pipe_tables) is simulated once, from the fork that
made it. Then the writers and readers of each pipe are combined. Left out are ends that an execution
made only to hand them to a child, and pipes of a jobserver. A trace that makes this long is given up,
and reported.
"""
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp, memset

from libetrace.core.memory cimport buffer_add, buffer_free, spill_drop_all
from libetrace.core.types cimport u8, u32, u64
from libetrace.trace.events cimport *
from libetrace.trace.pipe_tables cimport (
    READ_END, WRITE_END, Held, Member, Offer, Pipe, Table, User, View, close_fd, copy_fd,
    fill_table, free_tables, hold, is_alone, make_pipe, new_table, note_user, open_fd, pipe_of,
    spare_tables,
)
from libetrace.trace.thread_groups cimport Step, group_steps
from libetrace.trace.trace cimport (
    CLOEXEC, NO_PROCESS, TOO_MANY_PIPES, Edge, Event, Path, Process, Program, find_process, report_add,
)


# ---- links ----


cdef int compare_users(const void *a, const void *b) noexcept nogil:
    cdef u64 x = <u64>(<const User *>a).pipe << 32 | (<const User *>a).execution
    cdef u64 y = <u64>(<const User *>b).pipe << 32 | (<const User *>b).execution
    return (x > y) - (x < y)


cdef int compare_edges(const void *a, const void *b) noexcept nogil:
    cdef u64 x = <u64>(<const Edge *>a).writer << 32 | (<const Edge *>a).reader
    cdef u64 y = <u64>(<const Edge *>b).writer << 32 | (<const Edge *>b).reader
    return (x > y) - (x < y)


cdef size_t run_of(const User *users, size_t at, size_t n) noexcept nogil:
    cdef size_t end = at
    while end < n and users[end].pipe == users[at].pipe:
        end += 1
    return end


# Whether the execution made the end for a child, known only after the child has been followed.
cdef inline bint only_hands_on(Pipes *pipes, const User *user, int end) noexcept nogil:
    cdef const Pipe *pipe = pipe_of(pipes, user.pipe)
    return (pipe.is_handed_on[end] and not pipe.is_copied[end]
            and user.execution == pipes.trace.processes[pipe.process].first_execution + pipe.index)


# Every writer of a pipe with every reader of it.
cdef int cross(Pipes *pipes, const User *readers, size_t n_readers, const User *writers,
               size_t n_writers, Buffer *edges) noexcept nogil:
    cdef Edge edge
    cdef size_t i
    cdef size_t j
    pipes.work += n_readers * n_writers
    if pipes.work > pipes.budget:
        return 0
    for i in range(n_writers):
        if only_hands_on(pipes, &writers[i], WRITE_END):
            continue
        for j in range(n_readers):
            if only_hands_on(pipes, &readers[j], READ_END):
                continue
            edge.writer = writers[i].execution
            edge.reader = readers[j].execution
            if edge.writer != edge.reader and buffer_add(edges, &edge, sizeof(edge)) < 0:
                return -1
    return 0


# Whether a name ends with a slash and a text.
cdef inline bint ends_with(const Path *path, const char *text, u32 n) noexcept nogil:
    return path.len >= n and not memcmp(path.bytes + path.len - n, text, n)


# GNU make gives jobs that run beside another one an empty pipe to read, instead of its standard input.
cdef bint is_make(const Pipes *pipes, const Pipe *pipe) noexcept nogil:
    cdef const Program *program
    cdef const Path *path
    if not pipe.index:
        return False
    program = pipes.trace.processes[pipe.process].programs[pipe.index - 1]
    path = &pipes.trace.paths[pipes.trace.chunks[program.chunk].ranks[0][program.names[0]]]
    return ends_with(path, b"/make", 5) or ends_with(path, b"/gmake", 6) \
        or ends_with(path, b"/remake", 7)


# Those who had an end of a pipe that nobody held alone: the execution that made the pipe, and had both.
# A shell fills a here-document's pipe before it closes the end that it wrote to.
cdef int cross_maker(Pipes *pipes, const User *users, size_t n, int end, Buffer *edges) noexcept nogil:
    cdef const Pipe *pipe = pipe_of(pipes, users[0].pipe)
    cdef User maker
    if pipe.is_jobserver or is_make(pipes, pipe):
        return 0
    maker.pipe = users[0].pipe
    maker.execution = pipes.trace.processes[pipe.process].first_execution + pipe.index
    if end == READ_END:
        return cross(pipes, users, n, &maker, 1, edges)
    return cross(pipes, &maker, 1, users, n, edges)


cdef int cross_all(Pipes *pipes, Buffer *edges) noexcept nogil:
    cdef const User *readers = <const User *>pipes.users[READ_END].data
    cdef const User *writers = <const User *>pipes.users[WRITE_END].data
    cdef size_t n_readers = pipes.users[READ_END].len / sizeof(User)
    cdef size_t n_writers = pipes.users[WRITE_END].len / sizeof(User)
    cdef size_t r = 0
    cdef size_t w = 0
    cdef size_t r_end
    cdef size_t w_end
    cdef int status = 0
    while status == 0 and (r < n_readers or w < n_writers) and pipes.work <= pipes.budget:
        r_end = run_of(readers, r, n_readers)
        w_end = run_of(writers, w, n_writers)
        if w == n_writers or (r < n_readers and readers[r].pipe < writers[w].pipe):
            status = cross_maker(pipes, readers + r, r_end - r, READ_END, edges)
            r = r_end
        elif r == n_readers or writers[w].pipe < readers[r].pipe:
            status = cross_maker(pipes, writers + w, w_end - w, WRITE_END, edges)
            w = w_end
        else:
            if not pipe_of(pipes, writers[w].pipe).is_jobserver:
                status = cross(pipes, readers + r, r_end - r, writers + w, w_end - w, edges)
            r, w = r_end, w_end
    return status


cdef void sort_users(Buffer *users) noexcept nogil:
    if users.len:
        qsort(users.data, users.len / sizeof(User), sizeof(User), compare_users)


# Every writer of each pipe with every reader of it, unless that is too much work; -1 without memory.
cdef int cross_users(Pipes *pipes, Buffer *edges) noexcept nogil:
    sort_users(&pipes.users[READ_END])
    sort_users(&pipes.users[WRITE_END])
    return cross_all(pipes, edges)


# Gives the edges to the trace, in order, each once.
cdef void keep_edges(Trace *trace, Buffer *edges) noexcept nogil:
    cdef Edge *all_edges = <Edge *>edges.data
    cdef u64 n = edges.len / sizeof(Edge)
    cdef u64 i
    if n:
        qsort(all_edges, n, sizeof(Edge), compare_edges)
    trace.edges = all_edges
    trace.n_edges = 0
    for i in range(n):
        if not i or compare_edges(&all_edges[i], &all_edges[trace.n_edges - 1]):
            all_edges[trace.n_edges] = all_edges[i]
            trace.n_edges += 1


# ---- descriptors of pipes ----


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
cdef int end_execution(Pipes *pipes, u32 process) noexcept nogil:
    cdef const Buffer *views = &pipes.members[process].table.views
    cdef size_t i
    cdef int end
    pipes.work += views.len / sizeof(View)
    for i in range(views.len / sizeof(View)):
        for end in range(2):
            if note_user(pipes, process, &(<View *>views.data)[i], end) < 0:
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
    if end_execution(pipes, process) < 0:
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
    if end_execution(pipes, process) < 0:
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
            if start(pipes, number, NULL) < 0 or end_execution(pipes, number) < 0:
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
