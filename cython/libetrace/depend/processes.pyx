# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Executions -> processes, by union-find over the forks.

A thread has a upid of its own and shares its memory with its creator: what one reads the other may
write. The flags are those of clone(2); a vfork shares memory only until the child executes.
"""
cdef enum:
    CLONE_VM = 0x100
    CLONE_VFORK = 0x4000
    CLONE_THREAD = 0x10000


cdef inline u32 root_of(u32 *parent, u32 row) noexcept nogil:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


# The smaller row stays the root, so that a root comes before all of its own.
cdef inline void join(u32 *parent, u32 a, u32 b) noexcept nogil:
    a = root_of(parent, a)
    b = root_of(parent, b)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


cdef inline bint shares_memory(u64 flags) noexcept nogil:
    return flags & CLONE_THREAD or flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM


cdef void join_threads(const Executions *executions, u32 *parent) noexcept nogil:
    cdef u32 row
    cdef u64 i
    for row in range(executions.n):
        for i in range(executions.children_start[row], executions.children_start[row + 1]):
            if executions.child[i] >= 0 and shares_memory(executions.flags[i]):
                join(parent, row, <u32>executions.child[i])


cdef u32 number_roots(u32 *parent, u32 n) noexcept nogil:
    cdef u32 n_processes = 0
    cdef u32 row
    for row in range(n):
        parent[row] = root_of(parent, row)
    for row in range(n):
        if parent[row] == row:
            parent[row] = n_processes
            n_processes += 1
        else:
            parent[row] = parent[parent[row]]
    return n_processes


cdef u32 number_processes(const Executions *executions, u32 *process_of) noexcept nogil:
    cdef u32 row
    for row in range(executions.n):
        process_of[row] = row
        if row and executions.upid[row] == executions.upid[row - 1]:
            process_of[row] = process_of[row - 1]
    join_threads(executions, process_of)
    if executions.wrapper != NULL:
        for row in range(executions.n):
            if executions.wrapper[row] >= 0:
                join(process_of, row, <u32>executions.wrapper[row])
    return number_roots(process_of, executions.n)
