# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The effect of an event on the descriptors of a process that are ends of pipes.

Of each pipe a table knows until when it held one end without the other. Tables hold a handful of
pipes, so they are searched from end to end, and the work is counted: trace.pipes has the budget.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.trace.trace cimport BY_EXEC, CLOEXEC, REOPENS_PIPE, Path
from libetrace.core.scan cimport etrace_decimal

cdef enum:
    NO_PIPE = 0xffffffff
    NO_FD = -0x80000000


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


# Called before a change: only the state at the start of the step counts, not intermediate ones.
cdef void note_alone(const Pipes *pipes, View *view) noexcept nogil:
    cdef int end
    if view.changed == pipes.step:
        return
    view.changed = pipes.step
    for end in range(2):
        if is_alone(view, end):
            view.alone_until[end] = pipes.step


cdef int note_user(Pipes *pipes, u32 process, const View *view, int end) noexcept nogil:
    cdef const Member *member = &pipes.members[process]
    cdef User user
    if not is_alone(view, end) and view.alone_until[end] <= member.since:
        return 0
    if not member.index and pipes.trace.processes[process].n_programs \
            and pipe_of(pipes, view.pipe).process != process:
        return 0
    user.pipe = view.pipe
    user.execution = pipes.trace.processes[process].first_execution + member.index
    return buffer_add(&pipes.users[end], &user, sizeof(user))


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
        if note_user(pipes, table.owner, view, end) < 0:
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


cdef void free_tables(Table **tables) noexcept nogil:
    cdef Table *older
    while tables[0] != NULL:
        older = tables[0].older
        buffer_free(&tables[0].held)
        buffer_free(&tables[0].views)
        free(tables[0])
        tables[0] = older


cdef void spare_tables(Pipes *pipes) noexcept nogil:
    cdef Table *table
    while pipes.tables != NULL:
        table = pipes.tables
        pipes.tables = table.older
        table.older = pipes.spare
        pipes.spare = table
