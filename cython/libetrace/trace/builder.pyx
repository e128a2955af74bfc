# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Writes the database in ranges of processes.

Threads build ranges in any order; the place of a range in the file is known when the text of those
before it is, so that writing needs no waiting for writing.
"""
from libc.errno cimport EINTR, errno
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from libetrace.trace.entries cimport Builder, build_process, builder_free, builder_init
from libetrace.trace.thread_groups cimport group_records, has_groups
from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.core.scan cimport etrace_add, etrace_take
from libetrace.trace.trace cimport NO_PROCESS

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t *lock, void *attributes)
    int pthread_mutex_destroy(pthread_mutex_t *lock)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    int pthread_cond_init(pthread_cond_t *cond, void *attributes)
    int pthread_cond_destroy(pthread_cond_t *cond)
    int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
    int pthread_cond_broadcast(pthread_cond_t *cond)

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void *bytes, size_t len, long long offset)

cdef enum:
    RANGE_EVENTS = 8192  # about half a megabyte of text


cdef bint has_entries(const Trace *trace, u32 number) noexcept nogil:
    return trace.processes[number].upid != 0 and trace.processes[number].n_events > 0


# Cuts the processes into ranges of about the same work.
cdef int cut_ranges(Output *output, Trace *trace) noexcept nogil:
    cdef u64 n_events = RANGE_EVENTS
    cdef u32 i
    output.ranges = <u32 *>malloc((<size_t>trace.n_processes + 2) * sizeof(u32))
    if output.ranges == NULL:
        return -1
    output.first_process = NO_PROCESS
    for i in range(trace.n_processes):
        if n_events >= RANGE_EVENTS:
            output.ranges[output.n_ranges] = i
            output.n_ranges += 1
            n_events = 0
        n_events += trace.processes[i].n_events
        if output.first_process == NO_PROCESS and has_entries(trace, i):
            output.first_process = i
    output.ranges[output.n_ranges] = trace.n_processes
    return 0


cdef int output_init(Output *output, Trace *trace, int fd, u64 split_bytes) noexcept nogil:
    memset(output, 0, sizeof(output[0]))
    pthread_mutex_init(&output.lock, NULL)
    pthread_cond_init(&output.moved, NULL)
    output.fd = fd
    output.split_bytes = split_bytes
    if cut_ranges(output, trace) < 0:
        return -1
    if not has_groups(trace):
        return 0
    output.records = <Buffer *>calloc(<size_t>trace.n_processes + 1, sizeof(Buffer))
    if output.records == NULL:
        return -1
    return group_records(trace, output.records)


cdef void output_free(Output *output, Trace *trace) noexcept nogil:
    cdef u32 i
    if output.records != NULL:
        for i in range(trace.n_processes):
            buffer_free(&output.records[i])
        free(output.records)
    free(output.ranges)
    buffer_free(&output.text)
    pthread_mutex_destroy(&output.lock)
    pthread_cond_destroy(&output.moved)


cdef int write_all(int fd, const char *bytes, size_t len, u64 offset) noexcept nogil:
    cdef ssize_t n
    while len:
        n = pwrite(fd, bytes, len, <long long>offset)
        if n < 0 and errno == EINTR:
            continue
        if n < 0:
            return -1
        bytes += n
        len -= <size_t>n
        offset += <u64>n
    return 0


# Waits for the place of a range and takes it; False when another thread has failed.
cdef bint take_place(Output *output, Trace *trace, u64 number, size_t len,
                     u64 *offset) noexcept nogil:
    cdef bint is_mine
    pthread_mutex_lock(&output.lock)
    while output.turn != number and not trace.failed and not trace.cancelled:
        pthread_cond_wait(&output.moved, &output.lock)
    is_mine = output.turn == number
    if is_mine:
        offset[0] = output.offset
        output.offset += len
        output.turn += 1
    pthread_cond_broadcast(&output.moved)
    pthread_mutex_unlock(&output.lock)
    return is_mine


cdef int put_range(Output *output, Trace *trace, Buffer *text, u64 number) noexcept nogil:
    cdef u64 offset
    if not take_place(output, trace, number, text.len, &offset):
        return 0
    if output.fd < 0:
        return buffer_add(&output.text, text.data, text.len)
    if write_all(output.fd, text.data, text.len, offset) < 0:
        output.error = errno
        return -1
    return 0


cdef int build_range(Output *output, Trace *trace, Builder *builder, u64 number) noexcept nogil:
    cdef u32 i
    builder.out.len = 0
    for i in range(output.ranges[number], output.ranges[number + 1]):
        if has_entries(trace, i) and build_process(builder, i) < 0:
            return -1
    return put_range(output, trace, &builder.out, number)


cdef int build_ranges(Output *output, Trace *trace) noexcept nogil:
    cdef Builder builder
    cdef u64 number
    cdef int status = builder_init(&builder, trace)
    builder.grouped = output.records
    builder.split_bytes = output.split_bytes
    builder.first_process = output.first_process
    while status == 0 and not trace.cancelled and not trace.failed:
        number = etrace_take(&trace.taken)
        if number >= output.n_ranges:
            break
        status = build_range(output, trace, &builder, number)
    etrace_add(&output.n_entries, builder.n_entries)
    etrace_add(&output.n_files, builder.n_files)
    builder_free(&builder)
    if status < 0 or trace.cancelled:
        give_up(output, trace)
    return status


# Wakes those who wait for a place that will never come.
cdef void give_up(Output *output, Trace *trace) noexcept nogil:
    pthread_mutex_lock(&output.lock)
    trace.failed = 1
    pthread_cond_broadcast(&output.moved)
    pthread_mutex_unlock(&output.lock)


cdef int output_end(Output *output) noexcept nogil:
    cdef const char *end = b"\n]\n" if output.offset else b"[\n]\n"
    cdef size_t len = 3 if output.offset else 4
    if output.fd < 0:
        return buffer_add(&output.text, end, len)
    if write_all(output.fd, end, len, output.offset) < 0:
        output.error = errno
        return -1
    output.offset += len
    return 0
