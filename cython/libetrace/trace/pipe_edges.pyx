# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Pipe links: combines the writers and readers of each pipe.

Left out are ends that an execution made only to hand them to a child, and pipes of a jobserver.
"""
from libc.stdlib cimport qsort

from libetrace.core.memory cimport buffer_add
from libetrace.trace.pipe_tables cimport READ_END, WRITE_END, Pipe, User, pipe_of
from libetrace.trace.trace cimport Edge
from libetrace.core.types cimport u64


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


cdef int cross_users(Pipes *pipes, Buffer *edges) noexcept nogil:
    sort_users(&pipes.users[READ_END])
    sort_users(&pipes.users[WRITE_END])
    return cross_all(pipes, edges)


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
