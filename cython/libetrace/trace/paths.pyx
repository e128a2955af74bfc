# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Numbers every string of the trace by its place in the order of bytes.

An opened file is then a pair of numbers, and to sort files is to sort numbers. The lstat of a path is
made once, however often it was opened.
"""
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memchr, memcmp, memset

from libetrace.core.interned cimport NO_NAME, Name, names_intern
from libetrace.core.scan cimport ETRACE_PAD, etrace_take
from libetrace.core.types cimport u8, u32, u64
from libetrace.image.schema cimport EXISTS, TYPE_SHIFT
from libetrace.trace.trace cimport N_USES, Path, Worker

cdef extern from "<sys/stat.h>" nogil:
    enum: S_IFMT
    ctypedef struct stat_result "struct stat":
        unsigned int st_mode
        long long st_size
    int lstat(const char *path, stat_result *result)

cdef enum:
    STEP = 64  # paths taken at a time


cdef struct Sorted:
    const Name *name
    u32 number  # of the name


cdef int compare_names(const void *a, const void *b) noexcept nogil:
    cdef const Name *x = (<const Sorted *>a).name
    cdef const Name *y = (<const Sorted *>b).name
    cdef int order = memcmp(x.bytes, y.bytes, min(x.len, y.len))
    return order if order else (x.len > y.len) - (x.len < y.len)


# Gives the names of every thread a number among those of the first one.
cdef int join_names(Trace *trace) noexcept nogil:
    cdef Worker *first = &trace.workers[0]
    cdef Worker *worker
    cdef Name *name
    cdef u32 w
    cdef u32 i
    for w in range(trace.n_workers):
        worker = &trace.workers[w]
        worker.ranks = <u32 *>malloc((<size_t>worker.names.n + 1) * sizeof(u32))
        if worker.ranks == NULL:
            return -1
        for i in range(worker.names.n if w else 0):
            name = &worker.names.all[i]
            worker.ranks[i] = names_intern(&first.names, name.bytes, name.len)
            if worker.ranks[i] == NO_NAME:
                return -1
            if name.wants_stat:
                first.names.all[worker.ranks[i]].wants_stat = True
    return 0


cdef Sorted *sort_names(const Worker *first) noexcept nogil:
    cdef Sorted *order = <Sorted *>malloc((<size_t>first.names.n + 1) * sizeof(Sorted))
    cdef u32 i
    if order == NULL:
        return NULL
    for i in range(first.names.n):
        order[i].name = &first.names.all[i]
        order[i].number = i
    if first.names.n:
        qsort(order, first.names.n, sizeof(Sorted), compare_names)
    return order


cdef int rank_names(Trace *trace, u32 *ranks) noexcept nogil:
    cdef Sorted *order = sort_names(&trace.workers[0])
    cdef u32 i
    if order == NULL:
        return -1
    for i in range(trace.n_paths):
        ranks[order[i].number] = i
        trace.paths[i].bytes = order[i].name.bytes
        trace.paths[i].len = order[i].name.len
        trace.paths[i].wants_stat = order[i].name.wants_stat
    free(order)
    return 0


cdef int make_uses(Trace *trace) noexcept nogil:
    cdef int i
    for i in range(N_USES):
        trace.uses[i] = <u8 *>calloc(<size_t>trace.n_paths + 1, 1)
        if trace.uses[i] == NULL:
            return -1
    return 0


# The empty string, for it is a path, too; a name is compared in blocks, so bytes follow it.
cdef u32 intern_empty(Worker *worker) noexcept nogil:
    cdef char[ETRACE_PAD] padded
    memset(padded, 0, ETRACE_PAD)
    return names_intern(&worker.names, padded, 0)


cdef int join_paths(Trace *trace) noexcept nogil:
    cdef Worker *first = &trace.workers[0]
    cdef u32 empty = intern_empty(first)
    cdef u32 *ranks
    cdef u32 w
    cdef u32 i
    if empty == NO_NAME or join_names(trace) < 0:
        return -1
    trace.n_paths = first.names.n
    trace.paths = <Path *>calloc(<size_t>trace.n_paths + 1, sizeof(Path))
    ranks = <u32 *>malloc((<size_t>trace.n_paths + 1) * sizeof(u32))
    if trace.paths == NULL or ranks == NULL or rank_names(trace, ranks) < 0:
        free(ranks)
        return -1
    for w in range(1, trace.n_workers):
        for i in range(trace.workers[w].names.n):
            trace.workers[w].ranks[i] = ranks[trace.workers[w].ranks[i]]
    free(first.ranks)
    first.ranks = ranks
    trace.empty = ranks[empty]
    return make_uses(trace)


# What has a null byte inside is no path that the system can be asked for.
cdef void look_up(Path *path) noexcept nogil:
    cdef stat_result result
    if memchr(path.bytes, 0, path.len) != NULL:
        return
    if lstat(path.bytes, &result) < 0:
        return
    path.mode = EXISTS | (result.st_mode & S_IFMT) >> TYPE_SHIFT
    path.size = result.st_size


cdef int prepare_paths(Trace *trace) noexcept nogil:
    cdef u64 i
    cdef u64 end
    while not trace.load.cancelled and not trace.no_stat:
        i = etrace_take(&trace.load.taken) * STEP
        if i >= trace.n_paths:
            break
        end = min(i + STEP, <u64>trace.n_paths)
        for i in range(i, end):
            if trace.paths[i].wants_stat:
                look_up(&trace.paths[i])
    return 0
