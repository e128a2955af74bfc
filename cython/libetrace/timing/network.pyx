# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Processes -> segments, and which of them had to end before which could begin.

etrace/timing/network.py says what the rules are. All numbers of processes and rows are checked first.
"""
from collections import namedtuple

from cpython cimport array
from libc.stdlib cimport qsort

from libetrace.core.types cimport s8, s32, s64, u8, u32

cdef enum:
    NONE = -1
    # what happened in a process, in the order in which it counts at one time
    EXEC = 0
    FORK = 1
    CHILD_ENDED = 2
    WRITER_ENDED = 3
    # why a segment could not begin: a place in etrace.timing.network.Reason
    BY_SAME = 0
    BY_FORK = 1
    BY_CHILD = 2
    BY_PIPE = 3
    NO_REASON = -1

Segments = namedtuple("Segments", "execution begin_ns end_ns work_ns job waited first last forked_by")
Edges = namedtuple("Edges", "after before reason path")


cdef struct Cut:
    s64 time
    s32 kind
    s32 other


cdef int compare_cuts(const void *a, const void *b) noexcept nogil:
    cdef const Cut *x = <const Cut *>a
    cdef const Cut *y = <const Cut *>b
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    if x.kind != y.kind:
        return (x.kind > y.kind) - (x.kind < y.kind)
    return (x.other > y.other) - (x.other < y.other)


cdef struct Processes:
    s64 n
    const s64 *row_start
    const s32 *first
    const s32 *end
    const s64 *start_ns
    const s64 *end_ns
    const s32 *parent
    const u32 *child_start
    const s32 *child
    const u32 *writer_start
    const s32 *writer
    const u8 *is_scheduler


cdef struct Built:
    s64 n  # segments
    s32 *execution
    s64 *begin_ns
    s64 *end_ns
    s64 *work_ns
    s8 *waited
    s32 *first  # segments of each process
    s32 *last
    s32 *forked_by
    s64 n_edges
    s32 *after
    s32 *before
    s8 *reason
    s64 n_waits
    s32 *wait_segment
    s32 *wait_other  # a process
    s8 *wait_reason
    Cut *cuts  # of one process


cdef s32 add(Built *b, s32 row, s64 begin, s64 end, s64 work) noexcept nogil:
    cdef s64 at = b.n
    b.execution[at] = row
    b.begin_ns[at] = begin
    b.end_ns[at] = end
    b.work_ns[at] = work
    b.waited[at] = NO_REASON
    b.n += 1
    return <s32>at


cdef void follow(Built *b, s32 after, s32 before, s8 reason) noexcept nogil:
    b.after[b.n_edges] = after
    b.before[b.n_edges] = before
    b.reason[b.n_edges] = reason
    b.n_edges += 1


cdef void wait_for(Built *b, s32 segment, s32 other, s8 reason) noexcept nogil:
    b.wait_segment[b.n_waits] = segment
    b.wait_other[b.n_waits] = other
    b.wait_reason[b.n_waits] = reason
    b.n_waits += 1


cdef s64 collect_cuts(const Processes *p, s64 number, Cut *cuts) noexcept nogil:
    cdef s64 n = 0
    cdef s32 row, child
    cdef u32 at
    for row in range(p.first[number] + 1, p.end[number]):
        cuts[n].time, cuts[n].kind, cuts[n].other = p.row_start[row], EXEC, row
        n += 1
    for at in range(p.child_start[number], p.child_start[number + 1]):
        child = p.child[at]
        cuts[n].time, cuts[n].kind, cuts[n].other = p.start_ns[child], FORK, child
        n += 1
        if p.end_ns[child] <= p.end_ns[number]:
            cuts[n].time, cuts[n].kind, cuts[n].other = p.end_ns[child], CHILD_ENDED, child
            n += 1
    for at in range(p.writer_start[number], p.writer_start[number + 1]):
        child = p.writer[at]
        cuts[n].time, cuts[n].kind, cuts[n].other = p.end_ns[child], WRITER_ENDED, child
        n += 1
    qsort(cuts, n, sizeof(Cut), &compare_cuts)
    return n


cdef void cut_process(const Processes *p, s64 number, Built *b) noexcept nogil:
    cdef s64 n_cuts = collect_cuts(p, number, b.cuts)
    cdef s64 end = p.end_ns[number]
    cdef s64 at = p.start_ns[number]
    cdef s32 row = p.first[number]
    cdef s32 due = NONE  # the process that ended where the segment before did
    cdef s8 due_reason = NO_REASON
    cdef s32 segment = NONE
    cdef s64 i, time
    cdef bint is_wait
    b.first[number] = <s32>b.n
    for i in range(n_cuts + 1):
        time = min(max(b.cuts[i].time, at), end) if i < n_cuts else end
        is_wait = i < n_cuts and b.cuts[i].kind >= CHILD_ENDED
        segment = add(b, row, at, time, 0 if is_wait else time - at)
        if segment > b.first[number]:
            follow(b, segment, segment - 1, BY_SAME)
        if due != NONE:
            wait_for(b, segment, due, due_reason)
            due = NONE
        at = time
        if i == n_cuts:
            break
        if b.cuts[i].kind == EXEC:
            row = b.cuts[i].other
        elif b.cuts[i].kind == FORK:
            b.forked_by[b.cuts[i].other] = segment
        else:
            due_reason = BY_CHILD if b.cuts[i].kind == CHILD_ENDED else BY_PIPE
            due = b.cuts[i].other
            b.waited[segment] = due_reason
    b.last[number] = segment


# First its work before the first job, then that before each other job, then the rest. It did that
# while no job was running: at other times it works beside its jobs.
cdef void cut_scheduler(const Processes *p, s64 number, Built *b) noexcept nogil:
    cdef s64 at = p.start_ns[number]
    cdef s64 end = p.end_ns[number]
    cdef s32 row = p.end[number] - 1
    cdef u32 first = p.child_start[number]
    cdef s64 free_from = 0
    cdef s64 gap, start
    cdef s32 opening, before, child, last
    cdef u32 i
    b.first[number] = <s32>b.n
    start = p.start_ns[p.child[first]]
    opening = add(b, row, at, start, start - at)
    for i in range(first, p.child_start[number + 1]):
        child = p.child[i]
        start = p.start_ns[child]
        gap = max(start - free_from, 0) if free_from else 0
        before = add(b, row, start - gap, start, gap)
        follow(b, before, opening, BY_SAME)
        b.forked_by[child] = before
        free_from = max(free_from, p.end_ns[child])
    start = min(max(free_from, at), end)
    last = add(b, row, start, end, end - start)
    follow(b, last, opening, BY_SAME)
    for i in range(first, p.child_start[number + 1]):
        if p.end_ns[p.child[i]] <= end:
            wait_for(b, last, p.child[i], BY_CHILD)
    b.last[number] = last


cdef void build_all(const Processes *p, Built *b, s32 *job) noexcept nogil:
    cdef s64 number, i
    for number in range(p.n):
        if p.is_scheduler[number] and p.child_start[number] < p.child_start[number + 1]:
            cut_scheduler(p, number, b)
        else:
            cut_process(p, number, b)
    for i in range(b.n):
        job[i] = NONE
    for number in range(p.n):
        if p.parent[number] != NONE and b.forked_by[number] != NONE:
            follow(b, b.first[number], b.forked_by[number], BY_FORK)
            if p.is_scheduler[p.parent[number]]:
                job[b.forked_by[number]] = <s32>number
    for i in range(b.n_waits):
        follow(b, b.wait_segment[i], b.last[b.wait_other[i]], b.wait_reason[i])


cdef array.array zeros(code, Py_ssize_t n):
    return array.clone(array.array(code), n, zero=True)


cdef s32 *s32_of(array.array column) noexcept:
    return <s32 *>column.data.as_ints


cdef s64 *s64_of(array.array column) noexcept:
    return <s64 *>column.data.as_longlongs


cdef s8 *s8_of(array.array column) noexcept:
    return <s8 *>column.data.as_schars


cdef int shorten(list columns, Py_ssize_t n) except -1:
    cdef array.array column
    for column in columns:
        array.resize(column, n)
    return 0


cdef int check_lists(const u32[::1] start, const s32[::1] items, s64 n) except -1:
    cdef Py_ssize_t i
    if start.shape[0] != n + 1 or start[0] or start[n] != <u32>items.shape[0]:
        raise ValueError("starts of no lists")
    for i in range(n):
        if start[i] > start[i + 1]:
            raise ValueError("starts are not in order")
    for i in range(items.shape[0]):
        if not 0 <= items[i] < n:
            raise IndexError(items[i])
    return 0


def cut_processes(
    const s64[::1] row_start, const s32[::1] first, const s32[::1] end, const s64[::1] start_ns,
    const s64[::1] end_ns, const s32[::1] parent, const u32[::1] child_start, const s32[::1] child,
    const u32[::1] writer_start, const s32[::1] writer, const u8[::1] is_scheduler,
):
    """Return the Segments of processes, and the Edges between them but for those by files.

    Of process i the executions are the rows `first[i]` up to `end[i]`, the children
    `child[child_start[i]:child_start[i + 1]]` in the order of their starts, and the writers of the
    pipes that it read `writer[..]` likewise. `first`, `last` and `forked_by` of Segments are by
    process, -1 for what nobody forked. IndexError, ValueError for invalid numbers.
    """
    cdef s64 n = first.shape[0]
    cdef s64 n_rows = row_start.shape[0]
    cdef s64 most = 0
    cdef Py_ssize_t i
    cdef Processes p
    cdef Built b
    if not n == end.shape[0] == start_ns.shape[0] == end_ns.shape[0] == parent.shape[0] \
            == is_scheduler.shape[0]:
        raise ValueError("columns of different lengths")
    check_lists(child_start, child, n)
    check_lists(writer_start, writer, n)
    for i in range(n):
        if not (0 <= first[i] < end[i] <= n_rows and NONE <= parent[i] < n):
            raise IndexError(i)
        most = max(most, end[i] - first[i] + 2 * <s64>(child_start[i + 1] - child_start[i])
                   + <s64>(writer_start[i + 1] - writer_start[i]))
    # a segment for each row, two for each child and one for each writer
    cdef s64 n_waits = child.shape[0] + writer.shape[0]
    cdef s64 room = n_rows + child.shape[0] + n_waits + 1
    made = [zeros(code, room) for code in "iqqqib"]
    ends = [array.array("i", [NONE]) * n for _ in range(3)]
    edges = [zeros(code, room + n + n_waits) for code in "iib"]
    waits = [zeros(code, n_waits + 1) for code in "iib"]
    cdef bytearray cuts = bytearray((most + 1) * sizeof(Cut))
    if not n:
        shorten(made, 0)
        shorten(edges, 0)
        return Segments(*made, *ends), Edges(*edges, array.array("i"))
    p.n, p.row_start = n, &row_start[0]
    p.first, p.end, p.start_ns, p.end_ns = &first[0], &end[0], &start_ns[0], &end_ns[0]
    p.parent, p.is_scheduler = &parent[0], &is_scheduler[0]
    p.child_start, p.child = &child_start[0], &child[0] if child.shape[0] else NULL
    p.writer_start, p.writer = &writer_start[0], &writer[0] if writer.shape[0] else NULL
    b.n = b.n_edges = b.n_waits = 0
    b.execution, b.begin_ns = s32_of(made[0]), s64_of(made[1])
    b.end_ns, b.work_ns = s64_of(made[2]), s64_of(made[3])
    b.waited = s8_of(made[5])
    b.first, b.last, b.forked_by = s32_of(ends[0]), s32_of(ends[1]), s32_of(ends[2])
    b.after, b.before, b.reason = s32_of(edges[0]), s32_of(edges[1]), s8_of(edges[2])
    b.wait_segment, b.wait_other = s32_of(waits[0]), s32_of(waits[1])
    b.wait_reason = s8_of(waits[2])
    b.cuts = <Cut *><char *>cuts
    cdef s32 *job = s32_of(made[4])
    with nogil:
        build_all(&p, &b, job)
    shorten(made, b.n)
    shorten(edges, b.n_edges)
    return Segments(*made, *ends), Edges(*edges, array.array("i", [NONE]) * b.n_edges)


def sort_edges(
    const s32[::1] after, const s32[::1] before, const s8[::1] reason, const s32[::1] path, s64 n,
):
    """Return (start, before, reason, path): the edges of segment i are those from `start[i]` on.

    They keep their order. IndexError for numbers of no segments.
    """
    cdef s64 n_edges = after.shape[0]
    cdef Py_ssize_t i
    if not n_edges == before.shape[0] == reason.shape[0] == path.shape[0]:
        raise ValueError("columns of different lengths")
    cdef array.array starts = zeros("I", n + 1)
    cdef array.array befores = zeros("i", n_edges)
    cdef array.array reasons = zeros("b", n_edges)
    cdef array.array paths = zeros("i", n_edges)
    cdef u32 *start = <u32 *>starts.data.as_uints
    cdef u32 at
    for i in range(n_edges):
        if not (0 <= after[i] < n and 0 <= before[i] < n):
            raise IndexError(i)
        start[after[i] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    for i in range(n_edges):
        at = start[after[i]]
        s32_of(befores)[at] = before[i]
        s8_of(reasons)[at] = reason[i]
        s32_of(paths)[at] = path[i]
        start[after[i]] += 1
    for i in range(n, 0, -1):  # each start was moved to its end
        start[i] = start[i - 1]
    start[0] = 0
    return starts, befores, reasons, paths
