# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Opens -> the different paths that each owner opened: commands, compilations, or any other groups.

A counting sort by owner, then a sort of each owner's paths: no Python object for an open. Owners of
executions are checked here; paths are only compared.
"""
from array import array
from collections import namedtuple

from libc.stdlib cimport calloc, free, malloc, qsort

from libetrace.core.types cimport s32, u8, u32, u64

OwnedPaths = namedtuple("OwnedPaths", "start path n_opens")

cdef enum:
    ACCESS = 3  # bits of opens.mode


cdef int compare_paths(const void *a, const void *b) noexcept nogil:
    cdef u32 x = (<const u32 *>a)[0]
    cdef u32 y = (<const u32 *>b)[0]
    return (x > y) - (x < y)


# The owner of an open, -1 for none.
cdef inline s32 owner_of(u32 execution, u8 mode, const s32[::1] owner, u8 left_out) noexcept nogil:
    if mode & ACCESS == left_out or execution >= <u64>owner.shape[0]:
        return -1
    return owner[execution]


# Adds the opens of each owner to start[owner + 1]; -1 for an owner that is none.
cdef int count_opens(
    const u32[::1] execution, const u8[::1] mode, const s32[::1] owner, u8 left_out, u64[::1] start
) noexcept nogil:
    cdef Py_ssize_t i
    cdef s32 own
    for i in range(execution.shape[0]):
        own = owner_of(execution[i], mode[i], owner, left_out)
        if <Py_ssize_t>own + 1 >= start.shape[0]:
            return -1
        if own >= 0:
            start[own + 1] += 1
    return 0


cdef void place_paths(
    const u32[::1] path, const u32[::1] execution, const u8[::1] mode, const s32[::1] owner,
    u8 left_out, u64 *place, u32 *paths
) noexcept nogil:
    cdef Py_ssize_t i
    cdef s32 own
    for i in range(path.shape[0]):
        own = owner_of(execution[i], mode[i], owner, left_out)
        if own >= 0:
            paths[place[own]] = path[i]
            place[own] += 1


# Sorts the paths of each owner and keeps each once, in place; returns how many are left.
cdef u64 unite(u32 *paths, u32 *counts, u64[::1] start) noexcept nogil:
    cdef u64 n = 0
    cdef u64 begin = 0
    cdef u64 end, first, i
    cdef Py_ssize_t own
    for own in range(start.shape[0] - 1):
        end, first = start[own + 1], n
        qsort(paths + begin, end - begin, sizeof(u32), compare_paths)
        for i in range(begin, end):
            if n > first and paths[n - 1] == paths[i]:
                counts[n - 1] += 1
            else:
                paths[n], counts[n] = paths[i], 1
                n += 1
        begin, start[own + 1] = end, n
    return n


cdef object column_of(const u32 *values, u64 n):
    column = array("I")
    if n:
        column.frombytes((<const char *>values)[:n * sizeof(u32)])
    return column


def owned_paths(tables, const s32[::1] owner, u32 n_owners, u8 left_out):
    """Return OwnedPaths: owner i has the places [start[i], start[i + 1]) of `path` and `n_opens`.

    `tables` have the columns `path`, `execution` and `mode`. `owner` is by execution, -1 for none;
    opens whose access is `left_out` do not count. `path` is sorted within an owner, each path once,
    and `n_opens` says how many opens that were. IndexError for an owner that is none.
    """
    cdef u64[::1] start
    cdef const u32[::1] path, execution
    cdef const u8[::1] mode
    cdef u64 n = 0
    cdef u64 i
    cdef u64 *place = NULL
    cdef u32 *paths = NULL
    cdef u32 *counts = NULL
    starts = array("Q", bytes(8 * (<u64>n_owners + 1)))
    start = starts
    columns = [(each["path"], each["execution"], each["mode"]) for each in tables]
    for path, execution, mode in columns:
        if path.shape[0] != execution.shape[0] or path.shape[0] != mode.shape[0]:
            raise IndexError("columns of different lengths")
        if count_opens(execution, mode, owner, left_out, start):
            raise IndexError("no such owner")
    for i in range(n_owners):
        start[i + 1] += start[i]
    n = start[n_owners]
    try:
        place = <u64 *>calloc(<u64>n_owners + 1, sizeof(u64))
        paths, counts = <u32 *>malloc((n + 1) * sizeof(u32)), <u32 *>malloc((n + 1) * sizeof(u32))
        if place == NULL or paths == NULL or counts == NULL:
            raise MemoryError
        for i in range(n_owners):
            place[i] = start[i]
        for path, execution, mode in columns:
            place_paths(path, execution, mode, owner, left_out, place, paths)
        with nogil:
            n = unite(paths, counts, start)
        return OwnedPaths(starts, column_of(paths, n), column_of(counts, n))
    finally:
        free(place)
        free(paths)
        free(counts)
