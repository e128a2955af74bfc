# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The executions of an image in figures: one pass over their columns, no Python object for each.

Row numbers of binaries are checked here; the rest is only counted.
"""
from collections import namedtuple

from libc.stdlib cimport calloc, free

from libetrace.core.types cimport INT64_MAX, s16, s32, s64, u32, u64
from libetrace.depend.threads cimport owners_of, parents_of
from libetrace.image.columns cimport Columns, s16_of, s32_of, s64_of, u64_of
from libetrace.image.schema cimport (
    EXECUTIONS_BINARY, EXECUTIONS_ELAPSED_NS, EXECUTIONS_INDEX, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_START_NS, EXECUTIONS_STATUS, EXECUTIONS_UPID,
    PATHS_STRING, PIPE_READERS_EXECUTION, USAGE_SYSTEM_NS, USAGE_USER_NS,
)

Totals = namedtuple("Totals", "elapsed_ns n_commands n_failed slowest programs")

cdef enum:
    NONE = -1


# What the commands took that ran one binary.
cdef struct Program:
    u64 n
    s64 elapsed
    s64 work


cdef inline s64 sum_of(s64 a, s64 b) noexcept nogil:
    if a > 0 and b > INT64_MAX - a:
        return INT64_MAX
    return a + b


# What an execution did itself: its CPU time where that is known, else its time without that in which
# the writers ran that it read from by a pipe.
cdef s64 work_of(Columns c, const s64 *waited, u64 row) noexcept nogil:
    cdef const s64 *user = s64_of(c, USAGE_USER_NS)
    cdef const s64 *system = s64_of(c, USAGE_SYSTEM_NS)
    cdef s64 elapsed = s64_of(c, EXECUTIONS_ELAPSED_NS)[row]
    if user != NULL and user[row] >= 0 and system[row] >= 0:
        return sum_of(user[row], system[row])
    return elapsed - min(elapsed, waited[row])


cdef bint has_reader(const s32 *reader, u64 low, u64 high, s32 wanted) noexcept nogil:
    cdef u64 middle
    cdef u64 end = high
    while low < high:
        middle = low + (high - low) / 2
        if reader[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < end and reader[low] == wanted


# Of each execution how long it ran beside those of the same parent that wrote to its pipes. Two that
# read and write one pipe share it with others, as those of a jobserver do: they do not wait.
cdef void find_waits(Columns c, s64 *waited) noexcept nogil:
    cdef const s64 *start = s64_of(c, EXECUTIONS_START_NS)
    cdef const s64 *elapsed = s64_of(c, EXECUTIONS_ELAPSED_NS)
    cdef const s32 *parent = s32_of(c, EXECUTIONS_PARENT)
    cdef const u64 *readers = u64_of(c, EXECUTIONS_READERS_START)
    cdef const s32 *reader = s32_of(c, PIPE_READERS_EXECUTION)
    cdef u64 n = c.length[EXECUTIONS_UPID]
    cdef u64 n_readers = c.length[PIPE_READERS_EXECUTION]
    cdef u64 i, at
    cdef s32 row
    for i in range(n):
        for at in range(readers[i], min(readers[i + 1], n_readers)):
            row = reader[at]
            if not 0 <= row < <s64>n or parent[row] != parent[i] or parent[row] == NONE:
                continue
            if has_reader(reader, min(readers[row], n_readers), min(readers[row + 1], n_readers),
                          <s32>i):
                continue
            waited[row] = max(waited[row], sum_of(start[i], elapsed[i]) - start[row])


# Rows of the longest so far, longest first; equal ones in the order of rows.
cdef u64 keep_longest(u64 *rows, u64 n, u64 most, const s64 *work, u64 row) noexcept nogil:
    cdef u64 at = n
    if n == most:
        if not most or work[rows[n - 1]] >= work[row]:
            return n
        at = n - 1
    else:
        n += 1
    while at and work[rows[at - 1]] < work[row]:
        rows[at] = rows[at - 1]
        at -= 1
    rows[at] = row
    return n


cdef s64 last_end(Columns c) noexcept nogil:
    cdef const s64 *start = s64_of(c, EXECUTIONS_START_NS)
    cdef const s64 *elapsed = s64_of(c, EXECUTIONS_ELAPSED_NS)
    cdef s64 last = 0
    cdef u64 i
    for i in range(c.length[EXECUTIONS_UPID]):
        last = max(last, sum_of(start[i], elapsed[i]))
    return last


# Totals of those that started no other: of each program, and the `most` that worked longest.
cdef struct Leaves:
    const char *is_parent
    s64 *work  # of each execution; how long it waited, before total()
    Program *programs
    u64 *rows
    u64 n_rows
    u64 most


cdef void add_leaf(Columns c, Leaves *leaves, u64 row) noexcept nogil:
    cdef u64 program = <u64>(s32_of(c, EXECUTIONS_BINARY)[row] + 1)
    if program > c.length[PATHS_STRING]:  # 0 for NONE, and for what is no path
        program = 0
    leaves.n_rows = keep_longest(leaves.rows, leaves.n_rows, leaves.most, leaves.work, row)
    leaves.programs[program].n += 1
    leaves.programs[program].elapsed = sum_of(leaves.programs[program].elapsed,
                                              s64_of(c, EXECUTIONS_ELAPSED_NS)[row])
    leaves.programs[program].work = sum_of(leaves.programs[program].work, leaves.work[row])


# (commands, failed ones).
cdef (u64, u64) total(Columns c, Leaves *leaves) noexcept nogil:
    cdef const s32 *index = s32_of(c, EXECUTIONS_INDEX)
    cdef const s16 *status = s16_of(c, EXECUTIONS_STATUS)
    cdef u64 n_commands = 0
    cdef u64 n_failed = 0
    cdef u64 i
    for i in range(c.length[EXECUTIONS_UPID]):
        if index[i] <= 0:
            continue
        n_commands += 1
        n_failed += status[i] != 0 and status[i] != NONE
        if not leaves.is_parent[i]:
            leaves.work[i] = work_of(c, leaves.work, i)
            add_leaf(c, leaves, i)
    return n_commands, n_failed


def total_executions(image, u32 n_slowest):
    """Return the Totals of an image: when it ended, and of executions that ran a program (commands).

    `slowest` has the rows of those that worked longest and started no process, `programs` how many
    there were of each binary, what they took and how long they worked: [(row of `paths` or NONE,
    number, ns, ns)]. Work is CPU time where that is known.
    """
    cdef Columns columns = Columns(image, is_checked=False)
    cdef bytearray is_parent = parents_of(columns, owners_of(columns))
    cdef u64 n = columns.length[EXECUTIONS_UPID]
    cdef u64 n_paths = columns.length[PATHS_STRING]
    cdef Leaves leaves
    cdef u64 n_commands, n_failed
    cdef s64 end
    cdef u64 i
    leaves.is_parent = is_parent
    leaves.programs = <Program *>calloc(n_paths + 1, sizeof(Program))
    leaves.rows = <u64 *>calloc(<u64>n_slowest + 1, sizeof(u64))
    leaves.work = <s64 *>calloc(n + 1, sizeof(s64))
    leaves.n_rows = 0
    leaves.most = n_slowest
    try:
        if leaves.programs == NULL or leaves.rows == NULL or leaves.work == NULL:
            raise MemoryError
        with nogil:
            end = last_end(columns)
            find_waits(columns, leaves.work)
            n_commands, n_failed = total(columns, &leaves)
        ran = []
        for i in range(n_paths + 1):
            if leaves.programs[i].n:
                ran.append((<s64>i - 1, leaves.programs[i].n, leaves.programs[i].elapsed,
                            leaves.programs[i].work))
        return Totals(end, n_commands, n_failed, [leaves.rows[i] for i in range(leaves.n_rows)],
                      ran)
    finally:
        free(leaves.programs)
        free(leaves.rows)
        free(leaves.work)
