# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Which rows of `executions` are threads: the one place that says what counts as a process.

A thread has a upid of its own. What it does before it executes a program belongs to the execution
that cloned it with CLONE_THREAD, and so do the processes that it starts. Row numbers are checked
here, rings of parents in a damaged image are cut.
"""
from cpython cimport array
from libc.stdlib cimport calloc, free

from libetrace.image.schema cimport (
    CHILDREN_EXECUTION, CHILDREN_FLAGS, EXECUTIONS_CHILDREN_START, EXECUTIONS_INDEX,
    EXECUTIONS_UPID,
)
from libetrace.image.columns cimport s32_of, s64_of, u64_of
from libetrace.core.types cimport u64

cdef enum:
    CLONE_THREAD = 0x10000  # clone(2)
    NONE = -1


cdef void find_cloners(Columns c, s32 *owner) noexcept nogil:
    cdef const u64 *start = u64_of(c, EXECUTIONS_CHILDREN_START)
    cdef const s32 *child = s32_of(c, CHILDREN_EXECUTION)
    cdef const u64 *flags = u64_of(c, CHILDREN_FLAGS)
    cdef const s32 *index = s32_of(c, EXECUTIONS_INDEX)
    cdef u64 n = c.length[EXECUTIONS_UPID]
    cdef u64 n_children = c.length[CHILDREN_EXECUTION]
    cdef u64 i, at
    for i in range(n):
        owner[i] = <s32>i
    for i in range(n):
        for at in range(start[i], min(start[i + 1], n_children)):
            if flags[at] & CLONE_THREAD and 0 <= child[at] < <s64>n and index[child[at]] == 0:
                owner[child[at]] = <s32>i


# The end of the chain of cloners from `row`; in a ring the row that was met again.
cdef s32 last_cloner(const s32 *owner, u8 *is_met, s32 row) noexcept nogil:
    while owner[row] != row and not is_met[row]:
        is_met[row] = 1
        row = owner[row]
    return row


cdef void find_owners(Columns c, s32 *owner, u8 *is_met) noexcept nogil:
    cdef u64 i
    cdef s32 row, end, above
    find_cloners(c, owner)
    for i in range(c.length[EXECUTIONS_UPID]):
        end = last_cloner(owner, is_met, <s32>i)
        row = <s32>i
        while is_met[row]:
            is_met[row] = 0
            above = owner[row]
            owner[row] = end
            row = above


cdef inline array.array new_rows(Columns columns):
    return array.clone(array.array("i"), <Py_ssize_t>columns.length[EXECUTIONS_UPID], zero=False)


cdef array.array owners_of(Columns columns):
    cdef u64 n = columns.length[EXECUTIONS_UPID]
    cdef array.array owner = new_rows(columns)
    cdef u8 *is_met = <u8 *>calloc(n + 1, 1)
    if is_met == NULL:
        raise MemoryError
    with nogil:
        find_owners(columns, <s32 *>owner.data.as_ints, is_met)
    free(is_met)
    return owner


cdef void mark_parents(Columns c, const s32 *owner, u8 *is_parent) noexcept nogil:
    cdef const u64 *start = u64_of(c, EXECUTIONS_CHILDREN_START)
    cdef const s32 *child = s32_of(c, CHILDREN_EXECUTION)
    cdef const u64 *flags = u64_of(c, CHILDREN_FLAGS)
    cdef u64 n_children = c.length[CHILDREN_EXECUTION]
    cdef u64 i, at
    for i in range(c.length[EXECUTIONS_UPID]):
        for at in range(start[i], min(start[i + 1], n_children)):
            if not flags[at] & CLONE_THREAD:
                is_parent[owner[i]] = 1
                break


cdef bytearray parents_of(Columns columns, array.array owner):
    cdef bytearray found = bytearray(len(owner))
    cdef u8 *is_parent = <u8 *><char *>found
    with nogil:
        mark_parents(columns, <s32 *>owner.data.as_ints, is_parent)
    return found


cdef u64 count_upids(Columns c, const s32 *owner) noexcept nogil:
    cdef const s64 *upid = s64_of(c, EXECUTIONS_UPID)
    cdef u64 found = 0
    cdef u64 i
    for i in range(c.length[EXECUTIONS_UPID]):
        found += (i == 0 or upid[i] != upid[i - 1]) and owner[i] == <s32>i
    return found


def find_thread_owners(image):
    """Return for each execution which one it belongs to: (n_executions,) int32.

    That is itself, or for the begin of a thread the execution of the process that cloned it.
    """
    return owners_of(Columns(image, is_checked=False))


def find_parents(image):
    """Return for each execution whether it or a thread of it started a process: one byte each."""
    cdef Columns columns = Columns(image, is_checked=False)
    return bytes(parents_of(columns, owners_of(columns)))


def count_processes(image):
    """Return the number of processes; threads have upids too, but do not count."""
    cdef Columns columns = Columns(image, is_checked=False)
    cdef array.array owner = new_rows(columns)
    find_cloners(columns, <s32 *>owner.data.as_ints)
    return count_upids(columns, <s32 *>owner.data.as_ints)
