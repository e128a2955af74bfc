# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Opens of files that the build wrote -> which job used a file after which other job.

etrace/timing/dependencies.py says what the rules are. Numbers of rows and processes are checked.
"""
from collections import namedtuple

from cpython cimport array
from libc.stdlib cimport qsort

from libetrace.core.types cimport INT64_MAX, s32, s64, u8, u32, u64
from libetrace.image.columns cimport Columns

cdef enum:
    NONE = -1
    ACCESS_BITS = 3  # of opens.mode
    TYPE_BITS = 0x3c
    DIRECTORY = 0x10

Order = namedtuple("Order", "before after path is_read")


cdef struct Use:
    s64 time
    s64 rank  # among those of one time: opens by row, then executions by path and process
    s32 path
    s32 process
    bint is_write


cdef int compare_uses(const void *a, const void *b) noexcept nogil:
    cdef const Use *x = <const Use *>a
    cdef const Use *y = <const Use *>b
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    if x.rank != y.rank:
        return (x.rank > y.rank) - (x.rank < y.rank)
    if x.path != y.path:
        return (x.path > y.path) - (x.path < y.path)
    return (x.process > y.process) - (x.process < y.process)


cdef struct Tree:
    const s32 *parent
    const s32 *depth
    const s64 *start_ns
    const s64 *end_ns
    const u8 *is_chosen  # whether children of a process are jobs; NULL: `job_of` says it
    const s32 *job_of


# The children, above or at two processes, of their nearest common ancestor.
cdef void children_of_common(const Tree *t, s32 a, s32 b, s32 *below_a, s32 *below_b) noexcept nogil:
    below_a[0] = below_b[0] = NONE
    while a != b:
        if t.depth[a] >= t.depth[b]:
            below_a[0] = a
            a = t.parent[a]
        else:
            below_b[0] = b
            b = t.parent[b]
        if a == NONE or b == NONE:
            below_a[0] = NONE
            return


cdef bint find_jobs(const Tree *t, s32 a, s32 b, s32 *job_a, s32 *job_b) noexcept nogil:
    if t.is_chosen == NULL:
        job_a[0], job_b[0] = t.job_of[a], t.job_of[b]
    else:
        children_of_common(t, a, b, job_a, job_b)
        if job_a[0] != NONE and not t.is_chosen[t.parent[job_a[0]]]:
            return False
    if job_a[0] == NONE or job_b[0] == NONE or job_a[0] == job_b[0]:
        return False
    return t.end_ns[job_a[0]] <= t.start_ns[job_b[0]]


# When the trace began, on the clock of opens: they are stamped, executions count from there.
cdef s64 begin_of_trace(Columns c) except? -1:
    cdef s64 began = INT64_MAX
    cdef u64 i
    for i in range(c.opens_open_ns.n):
        if c.opens_execution.at[i] >= c.executions_upid.n:
            raise IndexError(c.opens_execution.at[i])
        if c.opens_open_ns.at[i] > 0:
            began = min(began, c.opens_open_ns.at[i]
                        - c.executions_start_ns.at[c.opens_execution.at[i]])
    return 0 if began == INT64_MAX else began


cdef bint is_use(Columns c, const u8[::1] is_written, u64 row) noexcept:
    return is_written[c.opens_path.at[row]] and c.opens_mode.at[row] & TYPE_BITS != DIRECTORY


# Uses of written files by time: opens, and executions of programs that the build wrote.
cdef bytearray uses_of(Columns c, const u8[::1] is_written, const s32[::1] of_row):
    cdef s64 began = begin_of_trace(c)
    cdef u64 n_paths = is_written.shape[0]
    cdef u64 row
    cdef s64 n = 0
    cdef s64 at = 0
    cdef s32 binary
    for row in range(c.opens_path.n):
        if c.opens_path.at[row] >= n_paths:
            raise IndexError(c.opens_path.at[row])
        n += is_use(c, is_written, row)
    for row in range(c.executions_binary.n):
        binary = c.executions_binary.at[row]
        if binary != NONE and not 0 <= binary < <s64>n_paths:
            raise IndexError(binary)
        n += binary != NONE and is_written[binary]
    cdef bytearray memory = bytearray((n + 1) * sizeof(Use))
    cdef Use *use = <Use *><char *>memory
    for row in range(c.opens_path.n):
        if is_use(c, is_written, row):
            use[at].time, use[at].rank = c.opens_open_ns.at[row], <s64>row
            use[at].path = <s32>c.opens_path.at[row]
            use[at].process = of_row[c.opens_execution.at[row]]
            use[at].is_write = c.opens_mode.at[row] & ACCESS_BITS != 0
            at += 1
    for row in range(c.executions_binary.n):
        binary = c.executions_binary.at[row]
        if binary != NONE and is_written[binary]:
            use[at].time, use[at].rank = began + c.executions_start_ns.at[row], INT64_MAX
            use[at].path, use[at].process, use[at].is_write = binary, of_row[row], False
            at += 1
    qsort(use, n, sizeof(Use), &compare_uses)
    del memory[n * sizeof(Use):]
    return memory


# Who used files last, in the order of time: the readers of each since its writer, in a list.
cdef struct Reader:
    s32 process
    s32 next  # NONE at the end


cdef class Jobs:
    cdef Tree tree
    cdef dict place  # before << 32 | after -> place in the columns
    cdef array.array before, after, path, is_read

    # Keep one dependency between two jobs, rather one by a read.
    cdef int keep(self, s32 other, s32 process, s32 path, bint is_read) except -1:
        cdef s32 before = NONE
        cdef s32 after = NONE
        cdef s64 at
        if other == NONE or other == process:
            return 0
        if not find_jobs(&self.tree, other, process, &before, &after):
            return 0
        key = <s64>before << 32 | <s64>after
        found = self.place.get(key)
        if found is None:
            self.place[key] = len(self.before)
            self.before.append(before)
            self.after.append(after)
            self.path.append(path)
            self.is_read.append(is_read)
            return 0
        at = found
        if is_read and not self.is_read.data.as_schars[at]:
            self.path.data.as_ints[at] = path
            self.is_read.data.as_schars[at] = 1
        return 0


def find_begin(image):
    """Return the time stamp of opens at which executions count from 0, 0 without opens."""
    return begin_of_trace(Columns(image, is_checked=False))


def order_jobs(
    image, const u8[::1] is_written, const s32[::1] of_row, const s32[::1] parent,
    const s32[::1] depth, const s64[::1] start_ns, const s64[::1] end_ns, is_chosen, job_of,
):
    """Return the Order of jobs, each pair once, by the time of the later use.

    `is_written` is by path, `of_row` the process of each execution, the rest is by process. Jobs are
    the children of the nearest common ancestor of two processes where `is_chosen` (bytes) has that,
    or those that `job_of` (int32) names. A job ended before the other began. IndexError for numbers
    of no rows or processes.
    """
    cdef Columns c = Columns(image, is_checked=False)
    cdef s64 n = parent.shape[0]
    cdef const u8[::1] chosen
    cdef const s32[::1] jobs
    cdef Jobs found = Jobs()
    cdef Py_ssize_t i
    if not n == depth.shape[0] == start_ns.shape[0] == end_ns.shape[0]:
        raise ValueError("columns of different lengths")
    if of_row.shape[0] != <s64>c.executions_upid.n:
        raise ValueError("processes of other executions")
    for i in range(of_row.shape[0]):
        if not 0 <= of_row[i] < n:
            raise IndexError(of_row[i])
    for i in range(n):  # a parent is less deep: there is no ring
        if parent[i] != NONE and not (0 <= parent[i] < n and depth[parent[i]] < depth[i]):
            raise IndexError(parent[i])
    found.place = {}
    found.before, found.after = array.array("i"), array.array("i")
    found.path, found.is_read = array.array("i"), array.array("b")
    answer = Order(found.before, found.after, found.path, found.is_read)
    if not n:
        return answer
    found.tree.parent, found.tree.depth = &parent[0], &depth[0]
    found.tree.start_ns, found.tree.end_ns = &start_ns[0], &end_ns[0]
    found.tree.is_chosen, found.tree.job_of = NULL, NULL
    if is_chosen is not None:
        chosen = is_chosen
        if chosen.shape[0] != n:
            raise ValueError("columns of different lengths")
        found.tree.is_chosen = &chosen[0]
    else:
        jobs = job_of
        if jobs.shape[0] != n:
            raise ValueError("columns of different lengths")
        for i in range(n):
            if not NONE <= jobs[i] < n:
                raise IndexError(jobs[i])
        found.tree.job_of = &jobs[0]
    follow_uses(found, uses_of(c, is_written, of_row), is_written.shape[0])
    return answer


cdef int follow_uses(Jobs found, bytearray memory, s64 n_paths) except -1:
    cdef const Use *uses = <const Use *><char *>memory
    cdef s64 n = len(memory) // <s64>sizeof(Use)
    cdef array.array writer = array.array("i", [NONE]) * n_paths
    cdef array.array newest = array.array("i", [NONE]) * n_paths
    cdef bytearray lists = bytearray((n + 1) * sizeof(Reader))
    cdef Reader *readers = <Reader *><char *>lists
    cdef s64 i
    cdef s32 at
    for i in range(n):
        found.keep(writer.data.as_ints[uses[i].path], uses[i].process, uses[i].path,
                   not uses[i].is_write)
        at = newest.data.as_ints[uses[i].path]
        if not uses[i].is_write:
            if at == NONE or readers[at].process != uses[i].process:
                readers[i].process, readers[i].next = uses[i].process, at
                newest.data.as_ints[uses[i].path] = <s32>i
            continue
        while at != NONE:
            found.keep(readers[at].process, uses[i].process, uses[i].path, False)
            at = readers[at].next
        writer.data.as_ints[uses[i].path] = uses[i].process
        newest.data.as_ints[uses[i].path] = NONE
    return 0
