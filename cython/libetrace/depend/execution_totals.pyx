# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The executions of an image in figures: one pass over their columns, no Python object for each.

Row numbers of binaries are checked here; the rest is only counted.
"""
from collections import namedtuple

from libc.stdlib cimport calloc, free

from libetrace.core.types cimport INT64_MAX, s16, s32, s64, u8, u32, u64
from libetrace.image.columns cimport Columns, s16_of, s32_of, s64_of, u64_of
from libetrace.image.schema cimport (
    CHILDREN_FLAGS, CHILDREN_UPID, EXECUTIONS_BINARY, EXECUTIONS_CHILDREN_START,
    EXECUTIONS_ELAPSED_NS, EXECUTIONS_INDEX, EXECUTIONS_START_NS, EXECUTIONS_STATUS,
    EXECUTIONS_UPID, PATHS_STRING,
)

Totals = namedtuple("Totals", "elapsed_ns n_commands n_failed slowest programs")

cdef enum:
    CLONE_THREAD = 0x10000  # clone(2)
    NONE = -1


# What the commands took that ran one binary.
cdef struct Program:
    u64 n
    s64 elapsed


cdef inline s64 sum_of(s64 a, s64 b) noexcept nogil:
    if a > 0 and b > INT64_MAX - a:
        return INT64_MAX
    return a + b


cdef u64 first_of(const s64 *upid, u64 n, s64 wanted) noexcept nogil:
    cdef u64 low = 0
    cdef u64 high = n
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if upid[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


# How many upids there are without those that `is_thread` marks at their first row.
cdef u64 count_upids(const s64 *upid, u64 n, const u8 *is_thread) noexcept nogil:
    cdef u64 found = 0
    cdef u64 i
    for i in range(n):
        found += (i == 0 or upid[i] != upid[i - 1]) and not is_thread[i]
    return found


cdef void mark_threads(Columns c, u8 *is_thread) noexcept nogil:
    cdef const s64 *upid = s64_of(c, EXECUTIONS_UPID)
    cdef const s64 *child = s64_of(c, CHILDREN_UPID)
    cdef const u64 *flags = u64_of(c, CHILDREN_FLAGS)
    cdef u64 i, row
    for i in range(c.length[CHILDREN_UPID]):
        if flags[i] & CLONE_THREAD:
            row = first_of(upid, c.length[EXECUTIONS_UPID], child[i])
            if row < c.length[EXECUTIONS_UPID] and upid[row] == child[i]:
                is_thread[row] = 1


def count_processes(image):
    """Return the number of processes; threads have upids too, but do not count."""
    cdef Columns columns = Columns(image, is_checked=False)
    cdef u64 n = columns.length[EXECUTIONS_UPID]
    cdef u8 *is_thread = <u8 *>calloc(n + 1, 1)
    cdef u64 found
    if is_thread == NULL:
        raise MemoryError
    with nogil:
        mark_threads(columns, is_thread)
        found = count_upids(s64_of(columns, EXECUTIONS_UPID), n, is_thread)
    free(is_thread)
    return found


# Rows of the longest so far, longest first; equal ones in the order of rows.
cdef u64 keep_longest(u64 *rows, u64 n, u64 most, const s64 *elapsed, u64 row) noexcept nogil:
    cdef u64 at = n
    if n == most:
        if not most or elapsed[rows[n - 1]] >= elapsed[row]:
            return n
        at = n - 1
    else:
        n += 1
    while at and elapsed[rows[at - 1]] < elapsed[row]:
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


# (commands, failed ones); of those that started no other the `most` longest in `rows`, all in `programs`.
cdef (u64, u64) total(Columns c, Program *programs, u64 *rows, u64 most, u64 *n_rows) noexcept nogil:
    cdef const s64 *elapsed = s64_of(c, EXECUTIONS_ELAPSED_NS)
    cdef const u64 *children = u64_of(c, EXECUTIONS_CHILDREN_START)
    cdef const s32 *index = s32_of(c, EXECUTIONS_INDEX)
    cdef const s32 *binary = s32_of(c, EXECUTIONS_BINARY)
    cdef const s16 *status = s16_of(c, EXECUTIONS_STATUS)
    cdef u64 n_paths = c.length[PATHS_STRING]
    cdef u64 n_commands = 0
    cdef u64 n_failed = 0
    cdef u64 i, program
    for i in range(c.length[EXECUTIONS_UPID]):
        if index[i] <= 0:
            continue
        n_commands += 1
        n_failed += status[i] != 0 and status[i] != NONE
        if children[i] != children[i + 1]:
            continue
        n_rows[0] = keep_longest(rows, n_rows[0], most, elapsed, i)
        program = <u64>(binary[i] + 1)  # 0 for NONE, and for what is no path
        if program > n_paths:
            program = 0
        programs[program].n += 1
        programs[program].elapsed = sum_of(programs[program].elapsed, elapsed[i])
    return n_commands, n_failed


def total_executions(image, u32 n_slowest):
    """Return the Totals of an image: when it ended, and of executions that ran a program (commands).

    `slowest` has the rows of the longest of those that started no process, `programs` how many
    there were of each binary and what they took: [(row of `paths` or NONE, number, ns)].
    """
    cdef Columns columns = Columns(image, is_checked=False)
    cdef u64 n_paths = columns.length[PATHS_STRING]
    cdef Program *programs = <Program *>calloc(n_paths + 1, sizeof(Program))
    cdef u64 *rows = <u64 *>calloc(<u64>n_slowest + 1, sizeof(u64))
    cdef u64 n_rows = 0
    cdef u64 n_commands, n_failed
    cdef s64 end
    cdef u64 i
    try:
        if programs == NULL or rows == NULL:
            raise MemoryError
        with nogil:
            end = last_end(columns)
            n_commands, n_failed = total(columns, programs, rows, n_slowest, &n_rows)
        ran = []
        for i in range(n_paths + 1):
            if programs[i].n:
                ran.append((<s64>i - 1, programs[i].n, programs[i].elapsed))
        return Totals(end, n_commands, n_failed, [rows[i] for i in range(n_rows)], ran)
    finally:
        free(programs)
        free(rows)
