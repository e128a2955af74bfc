# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Follows the descriptors of pipes through forks, copies, closes and execs.

The rules are in docs/nfsdb-json.md. A table of descriptors is simulated once, from the fork that made
it; of each pipe it knows until when it held one end without the other. Tables hold a handful of
pipes, so they are searched from end to end; a trace that makes them long is given up (and told of).
"""
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memset

from libetrace.events cimport (
    ETRACE_EV_CLOSE, ETRACE_EV_DUP, ETRACE_EV_EXIT, ETRACE_EV_NEW_PROC, ETRACE_EV_OPEN, ETRACE_EV_PIPE,
    ETRACE_EV_SCHED_FORK,
)
from libetrace.groups cimport Step, group_steps
from libetrace.memory cimport Buffer, buffer_add, buffer_free
from libetrace.records cimport BY_EXEC, CLOEXEC, REOPENS_PIPE, Event
from libetrace.report cimport TOO_MANY_PIPES, report_add
from libetrace.scan cimport etrace_decimal
from libetrace.trace cimport NO_PROCESS, Edge, Path, Process, Trace, find_process
from libetrace.types cimport s32, u8, u32, u64
from libc.string cimport memcmp

cdef enum:
    READ_END = 0
    WRITE_END = 1
    WORK_PER_EVENT = 16
    WORK_FREE = 1 << 20
    NO_PIPE = 0xffffffff
    NO_FD = -0x80000000


# A descriptor.
cdef struct Held:
    s32 fd
    u32 pipe
    u8 end
    bint is_cloexec
    u32 closed_by  # process whose exec closes it, plus one


# What a table has held of a pipe.
cdef struct View:
    u32 pipe
    u32 n[2]  # descriptors of each end
    u64 alone_until[2]  # step at which an end was last held without the other
    u64 changed  # step of the last change


cdef struct Table:
    Buffer held  # Held
    Buffer views  # View
    u32 n_members
    u32 owner
    bint is_shared  # or was
    Table *older


cdef struct Pipe:
    u32 process  # that made it
    u32 index
    bint is_copied[2]  # by the execution that made it
    bint is_handed_on[2]  # to a child that has copied it
    bint is_jobserver  # some command began with both ends


# An execution that holds an end alone.
cdef struct User:
    u32 pipe
    u32 execution


# An end that an execution made and held alone when it forked a child.
cdef struct Offer:
    u32 pipe
    u8 end


cdef struct Member:
    Table *table
    u64 since  # step
    u32 index
    bint has_ended
    u32 inherited  # position and number of what the fork left for it in Pipes.snapshots
    u32 n_inherited
    u32 offers  # the same, in Pipes.offers
    u32 n_offers


cdef struct Pipes:
    Trace *trace
    Member *members  # by process
    Buffer pipes  # Pipe
    Buffer users[2]  # User
    Buffer snapshots  # Held
    Buffer offers  # Offer
    Buffer waiting  # groups whose fork has been seen
    Table *tables  # of the group at hand
    Table *spare
    u64 step
    u64 work
    u64 budget


cdef inline Pipe *pipe_of(Pipes *pipes, u32 number) noexcept nogil:
    return &(<Pipe *>pipes.pipes.data)[number]


cdef Held *find_held(Pipes *pipes, Table *table, s32 fd) noexcept nogil:
    cdef Held *held = <Held *>table.held.data
    cdef size_t n = table.held.len / sizeof(Held)
    cdef size_t i
    for i in range(n):
        if held[i].fd == fd:
            pipes.work += i
            return &held[i]
    pipes.work += n
    return NULL


cdef View *find_view(Pipes *pipes, Table *table, u32 number) noexcept nogil:
    cdef View *views = <View *>table.views.data
    cdef size_t n = table.views.len / sizeof(View)
    cdef size_t i
    for i in range(n, 0, -1):
        if views[i - 1].pipe == number:
            pipes.work += n - i
            return &views[i - 1]
    pipes.work += n
    return NULL


cdef inline bint is_alone(const View *view, int end) noexcept nogil:
    return view.n[end] > 0 and view.n[1 - end] == 0


# Before a change: what the step found counts, what it passes through does not.
cdef void note_alone(const Pipes *pipes, View *view) noexcept nogil:
    cdef int end
    if view.changed == pipes.step:
        return
    view.changed = pipes.step
    for end in range(2):
        if is_alone(view, end):
            view.alone_until[end] = pipes.step


cdef int hold(Pipes *pipes, Table *table, const Held *held) noexcept nogil:
    cdef View *view = find_view(pipes, table, held.pipe)
    cdef View fresh
    if view == NULL:
        memset(&fresh, 0, sizeof(fresh))
        fresh.pipe = held.pipe
        fresh.changed = pipes.step
        if buffer_add(&table.views, &fresh, sizeof(fresh)) < 0:
            return -1
        view = <View *>(table.views.data + table.views.len - sizeof(View))
    note_alone(pipes, view)
    view.n[held.end] += 1
    return buffer_add(&table.held, held, sizeof(held[0]))


# No descriptor of the pipe is left: a table of one process need not remember it.
cdef int forget(Pipes *pipes, Table *table, View *view) noexcept nogil:
    cdef int end
    if table.is_shared or view.n[READ_END] or view.n[WRITE_END]:
        return 0
    for end in range(2):
        if note_user(pipes, table.owner, view, end, False) < 0:
            return -1
    table.views.len -= sizeof(View)
    view[0] = (<View *>(table.views.data + table.views.len))[0]
    return 0


cdef int release(Pipes *pipes, Table *table, s32 fd) noexcept nogil:
    cdef Held *held = find_held(pipes, table, fd)
    cdef View *view
    if held == NULL:
        return 0
    view = find_view(pipes, table, held.pipe)
    note_alone(pipes, view)
    view.n[held.end] -= 1
    table.held.len -= sizeof(Held)
    held[0] = (<Held *>(table.held.data + table.held.len))[0]
    return forget(pipes, table, view)


cdef int make_pipe(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil:
    cdef Pipe pipe
    cdef Held held
    memset(&pipe, 0, sizeof(pipe))
    pipe.process = process
    pipe.index = pipes.members[process].index
    held.pipe = <u32>(pipes.pipes.len / sizeof(Pipe))
    if held.pipe == NO_PIPE or buffer_add(&pipes.pipes, &pipe, sizeof(pipe)) < 0:
        return -1
    if release(pipes, table, event.fd) < 0 or release(pipes, table, event.fd2) < 0:
        return -1
    held.is_cloexec = event.access & CLOEXEC != 0
    held.closed_by = 0
    held.fd = event.fd
    held.end = READ_END
    if event.fd != event.fd2 and hold(pipes, table, &held) < 0:
        return -1
    held.fd = event.fd2
    held.end = WRITE_END
    return hold(pipes, table, &held)


# Who copies an end uses it: the execution that made it, or the child that it was made for.
cdef void note_copy(Pipes *pipes, u32 process, const Held *held) noexcept nogil:
    cdef const Member *member = &pipes.members[process]
    cdef const Offer *offers = <const Offer *>pipes.offers.data + member.offers
    cdef Pipe *pipe = pipe_of(pipes, held.pipe)
    cdef u32 i
    if pipe.process == process and pipe.index == member.index:
        pipe.is_copied[held.end] = True
    pipes.work += member.n_offers
    for i in range(0 if member.index else member.n_offers):
        if offers[i].pipe == held.pipe and offers[i].end == held.end:
            pipe.is_handed_on[held.end] = True


cdef int copy_fd(Pipes *pipes, Table *table, u32 process, s32 old_fd, s32 new_fd,
                 bint is_cloexec) noexcept nogil:
    cdef Held *source = find_held(pipes, table, old_fd)
    cdef Held copy
    if old_fd == new_fd:
        return 0
    if source == NULL:
        return release(pipes, table, new_fd)
    copy = source[0]
    note_copy(pipes, process, &copy)
    copy.fd = new_fd
    copy.is_cloexec = is_cloexec
    copy.closed_by = 0
    if release(pipes, table, new_fd) < 0:
        return -1
    return hold(pipes, table, &copy)


cdef s32 number_after(const Path *path, const char *prefix, size_t len) noexcept nogil:
    cdef const char *at = path.bytes + len
    cdef u64 number
    if path.len <= len or memcmp(path.bytes, prefix, len):
        return NO_FD
    if etrace_decimal(&at, &number) <= 0 or number > 0x7fffffff or at != path.bytes + path.len:
        return NO_FD
    return <s32>number


cdef bint is_path(const Path *path, const char *text, size_t len) noexcept nogil:
    return path.len == len and not memcmp(path.bytes, text, len)


# The descriptor that an original path names, NO_FD when it names none.
cdef s32 named_fd(const Path *path) noexcept nogil:
    if is_path(path, b"/dev/stdin", 10):
        return 0
    if is_path(path, b"/dev/stdout", 11):
        return 1
    if is_path(path, b"/dev/stderr", 11):
        return 2
    if path.len > 8 and not memcmp(path.bytes, b"/dev/fd/", 8):
        return number_after(path, b"/dev/fd/", 8)
    return number_after(path, b"/proc/self/fd/", 14)


cdef int open_fd(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil:
    cdef u32 rank
    cdef s32 source
    if event.access & REOPENS_PIPE:
        rank = pipes.trace.chunks[event.chunk].ranks[0][event.payload.name.second]
        source = named_fd(&pipes.trace.paths[rank])
        if source != NO_FD:
            return copy_fd(pipes, table, process, source, event.fd, event.access & CLOEXEC != 0)
    return release(pipes, table, event.fd)


cdef int close_fd(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil:
    cdef Held *held
    if not event.access & BY_EXEC:
        return release(pipes, table, event.fd)
    held = find_held(pipes, table, event.fd)
    if held != NULL:
        held.closed_by = process + 1
    return 0


# An empty table: one that is done with, if there is any.
cdef Table *new_table(Pipes *pipes, u32 owner) noexcept nogil:
    cdef Table *table = pipes.spare
    if table != NULL:
        pipes.spare = table.older
        table.held.len = table.views.len = 0
        table.is_shared = False
    else:
        table = <Table *>calloc(1, sizeof(Table))
        if table == NULL:
            return NULL
    table.owner = owner
    table.n_members = 1
    table.older = pipes.tables
    pipes.tables = table
    return table


cdef int fill_table(Pipes *pipes, Table *table, const Held *held, size_t n) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if hold(pipes, table, &held[i]) < 0:
            return -1
    return 0


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


cdef int note_user(Pipes *pipes, u32 process, const View *view, int end,
                   bint executes) noexcept nogil:
    cdef const Member *member = &pipes.members[process]
    cdef User user
    if not is_alone(view, end) and view.alone_until[end] <= member.since:
        return 0
    if executes and not member.index and view.n[end]:
        return 0
    user.pipe = view.pipe
    user.execution = pipes.trace.processes[process].first_execution + member.index
    return buffer_add(&pipes.users[end], &user, sizeof(user))


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


# The table after an exec: without what it closes; one of its own if it was shared.
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


cdef void free_tables(Table **tables) noexcept nogil:
    cdef Table *older
    while tables[0] != NULL:
        older = tables[0].older
        buffer_free(&tables[0].held)
        buffer_free(&tables[0].views)
        free(tables[0])
        tables[0] = older


# The tables of a group that has been followed are for the next one.
cdef void spare_tables(Pipes *pipes) noexcept nogil:
    cdef Table *table
    while pipes.tables != NULL:
        table = pipes.tables
        pipes.tables = table.older
        table.older = pipes.spare
        pipes.spare = table


# Those that no Exit has ended hold what they hold to the end.
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


cdef int cross_all(Pipes *pipes, Buffer *edges) noexcept nogil:
    cdef const User *readers = <const User *>pipes.users[READ_END].data
    cdef const User *writers = <const User *>pipes.users[WRITE_END].data
    cdef size_t n_readers = pipes.users[READ_END].len / sizeof(User)
    cdef size_t n_writers = pipes.users[WRITE_END].len / sizeof(User)
    cdef size_t r = 0
    cdef size_t w = 0
    cdef size_t r_end
    cdef size_t w_end
    while r < n_readers and w < n_writers and pipes.work <= pipes.budget:
        r_end = run_of(readers, r, n_readers)
        w_end = run_of(writers, w, n_writers)
        if readers[r].pipe == writers[w].pipe and not pipe_of(pipes, writers[w].pipe).is_jobserver:
            if cross(pipes, readers + r, r_end - r, writers + w, w_end - w, edges) < 0:
                return -1
        if readers[r].pipe <= writers[w].pipe:
            if readers[r].pipe == writers[w].pipe:
                w = w_end
            r = r_end
        else:
            w = w_end
    return 0


cdef void sort_users(Buffer *users) noexcept nogil:
    if users.len:
        qsort(users.data, users.len / sizeof(User), sizeof(User), compare_users)


# Edges in order, each once.
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


cdef int link_all(Pipes *pipes, Buffer *steps, Buffer *edges) noexcept nogil:
    cdef int end
    if take_groups(pipes, steps) < 0:
        return -1
    for end in range(2):
        sort_users(&pipes.users[end])
    if cross_all(pipes, edges) < 0:
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
