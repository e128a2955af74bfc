# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Executions and which of them are shells -> the shell that wraps each of them.

The rule is in docs/postprocess.md; one pass over the rows, each process is looked at once.
"""
from libc.stdlib cimport free, malloc

from libetrace.core.types cimport s32, s64, u8

cdef enum:
    NONE = -1
    UNKNOWN = -2
    ASKED = -3  # on the way up from it: met again, the parents form a ring


cdef struct Forest:
    Py_ssize_t n
    const s32 *parent
    const s32 *binary
    const u8 *is_shell
    s32 *first  # first row of each row's process
    s32 *last   # last row of the process of each first row
    s32 *shell  # row of the latest shell in each row's process up to it, or NONE
    s32 *waiting


# Fill `first`, `last` and `shell`: rows of one process lie together.
cdef void init_processes(Forest *forest, const s64 *upid) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(forest.n):
        if row and upid[row] == upid[row - 1]:
            forest.first[row] = forest.first[row - 1]
            forest.shell[row] = forest.shell[row - 1]
        else:
            forest.first[row] = <s32>row
            forest.shell[row] = NONE
        forest.last[forest.first[row]] = <s32>row
        if forest.is_shell[row]:
            forest.shell[row] = <s32>row


# Whether the process executes the very shell that `shell` is: then it wraps its own.
cdef bint runs_the_same(const Forest *forest, s32 process, s32 shell) noexcept nogil:
    cdef s32 row
    for row in range(process, forest.last[process] + 1):
        if forest.is_shell[row] and forest.binary[row] == forest.binary[shell]:
            return True
    return False


# The answer for a process when it needs no other's: UNKNOWN when it is that of its parent process.
cdef s32 wrapper_at_hand(const Forest *forest, s32 process, const s32 *out) noexcept nogil:
    cdef s32 parent = forest.parent[process]
    cdef s32 shell
    if parent == NONE or forest.first[parent] == process:
        return NONE
    shell = forest.shell[parent]
    if shell == NONE:
        shell = out[forest.first[parent]]
        if shell == ASKED:
            return NONE
    if shell >= 0 and runs_the_same(forest, process, shell):
        return NONE
    return shell


# Answer for one process: up to the first ancestor whose answer is at hand, then down again.
cdef void resolve(const Forest *forest, s32 process, s32 *out) noexcept nogil:
    cdef Py_ssize_t n_waiting = 0
    cdef s32 wrapper
    while True:
        wrapper = wrapper_at_hand(forest, process, out)
        if wrapper != UNKNOWN:
            out[process] = wrapper
            if n_waiting == 0:
                return
            n_waiting -= 1
            process = forest.waiting[n_waiting]
            continue
        out[process] = ASKED
        forest.waiting[n_waiting] = process
        n_waiting += 1
        process = forest.first[forest.parent[process]]


cdef void map_all(Forest *forest, const s64 *upid, s32 *out) noexcept nogil:
    cdef Py_ssize_t row
    init_processes(forest, upid)
    for row in range(forest.n):
        out[row] = UNKNOWN
    for row in range(forest.n):
        if forest.first[row] != row:
            out[row] = out[forest.first[row]]
        elif out[row] == UNKNOWN:
            resolve(forest, <s32>row, out)


cdef int check_rows(const s32[::1] rows, Py_ssize_t n) except -1:
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if rows[i] < NONE or rows[i] >= n:
            raise ValueError(f"row {i}: parent {rows[i]} of {n} executions")
    return 0


def wrapping_shells(
    const s64[::1] upid, const s32[::1] parent, const s32[::1] binary, const u8[::1] is_shell,
    s32[::1] out,
):
    """Write the row of the wrapping shell of each execution to `out`, -1 where there is none.

    All (n_executions,), rows of one upid together; `is_shell` is 0 or 1. ValueError when lengths
    differ or a parent is no row; MemoryError.
    """
    cdef Py_ssize_t n = upid.shape[0]
    cdef Forest forest
    cdef s32 *memory
    if not (n == parent.shape[0] == binary.shape[0] == is_shell.shape[0] == out.shape[0]):
        raise ValueError("columns of different lengths")
    check_rows(parent, n)
    if n == 0:
        return
    memory = <s32 *>malloc(4 * n * sizeof(s32))
    if memory == NULL:
        raise MemoryError
    forest.n = n
    forest.parent = &parent[0]
    forest.binary = &binary[0]
    forest.is_shell = &is_shell[0]
    forest.first = memory
    forest.last = memory + n
    forest.shell = memory + 2 * n
    forest.waiting = memory + 3 * n
    with nogil:
        map_all(&forest, &upid[0], &out[0])
    free(memory)
