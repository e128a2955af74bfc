# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What all passes share: problems, the trace that comes through a pipe, questions about the whole.

Problems are aggregated: millions of broken lines make a few lines of report. A pipe is read in chunks
of whole lines, so that no more of a trace is in memory than is being parsed.
"""
from libc.errno cimport EINTR, errno
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve, spill_step
from libetrace.core.scan cimport ETRACE_PAD, etrace_hash64, etrace_peek


# ---- problems ----


cdef u64 lines_held(const Report *report, int problem) noexcept nogil:
    cdef u64 n = 0
    while n < N_PROBLEM_LINES and report.lines[problem][n]:
        n += 1
    return n


# Line numbers start at 1; 0 marks a free place. Keeps the smallest ones in order.
cdef void keep_line(Report *report, int problem, u64 line) noexcept nogil:
    cdef u64 at = lines_held(report, problem)
    if at == N_PROBLEM_LINES:
        at -= 1
        if report.lines[problem][at] <= line:
            return
    while at and report.lines[problem][at - 1] > line:
        report.lines[problem][at] = report.lines[problem][at - 1]
        at -= 1
    report.lines[problem][at] = line


cdef void report_add(Report *report, int problem, u64 line, u64 count) noexcept nogil:
    report.count[problem] += count
    if line:
        keep_line(report, problem, line)


cdef void report_merge(Report *into, const Report *other, u64 first_line) noexcept nogil:
    cdef int problem
    cdef u64 i
    for problem in range(N_PROBLEMS):
        into.count[problem] += other.count[problem]
        for i in range(lines_held(other, problem)):
            keep_line(into, problem, other.lines[problem][i] + first_line)


# ---- a trace from a pipe ----


cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t *lock, void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)

cdef extern from "<poll.h>" nogil:
    enum: POLLIN
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *fds, unsigned long n, int timeout_ms)

cdef extern from "<string.h>" nogil:
    void *memrchr(const void *where, int byte, size_t len)

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void *buffer, size_t size)

cdef enum:
    READ_BYTES = 1 << 20  # at least, when as many are wanted
    TICK_MS = 100  # after which it is looked whether to go on


cdef void stream_init(Stream *stream, int fd) noexcept nogil:
    memset(stream, 0, sizeof(stream[0]))
    pthread_mutex_init(&stream.lock, NULL)
    stream.fd = fd


cdef void stream_free(Stream *stream) noexcept nogil:
    buffer_free(&stream.rest)


cdef void stream_lock(Stream *stream) noexcept nogil:
    pthread_mutex_lock(&stream.lock)


cdef void stream_unlock(Stream *stream) noexcept nogil:
    pthread_mutex_unlock(&stream.lock)


# Waits for the next bytes; how many they are, 0 at the end, -1 when it failed or was cancelled.
cdef ssize_t wait_and_read(Stream *stream, char *to, size_t size, const u64 *cancelled) noexcept nogil:
    cdef pollfd wanted
    cdef ssize_t n
    wanted.fd = stream.fd
    wanted.events = POLLIN
    while not etrace_peek(cancelled):
        if poll(&wanted, 1, TICK_MS) <= 0:
            continue
        n = read(stream.fd, to, size)
        if n >= 0:
            return n
        if errno != EINTR:
            stream.error = errno
            return -1
    return -1


# Moves what follows the last newline to `rest`; whether there is a newline.
cdef int cut(Stream *stream, Buffer *text) noexcept nogil:
    cdef const char *newline = <const char *>memrchr(text.data, c'\n', text.len)
    cdef size_t len
    if newline == NULL:
        return 0
    len = newline + 1 - text.data
    if buffer_add(&stream.rest, newline + 1, text.len - len) < 0:
        return -1
    text.len = len
    return 1


cdef int stream_read(Stream *stream, Buffer *text, size_t wanted,
                     const u64 *cancelled) noexcept nogil:
    cdef ssize_t n
    cdef int status = 0
    text.len = 0
    if buffer_reserve(text, 1) < 0 or buffer_add(text, stream.rest.data, stream.rest.len) < 0:
        return -1
    stream.rest.len = 0
    while not stream.is_over and status == 0:
        if buffer_reserve(text, min(wanted, <size_t>READ_BYTES)) < 0:
            return -1
        n = wait_and_read(stream, text.data + text.len, text.cap - text.len, cancelled)
        if n < 0:
            text.len = 0
            return -1 if stream.error else 0
        text.len += n
        stream.n_bytes += n
        stream.is_over = n == 0
        if text.len >= wanted and not stream.is_over:
            status = cut(stream, text)
    memset(text.data + text.len, 0, ETRACE_PAD)
    return -1 if status < 0 else 0


# ---- the whole trace ----


cdef u32 find_process(const Trace *trace, s64 upid) noexcept nogil:
    cdef u32 at
    if trace.slots == NULL:
        return NO_PROCESS
    at = <u32>etrace_hash64(<u64>upid, trace.seed) & trace.mask
    while trace.slots[at] and trace.processes[trace.slots[at] - 1].upid != upid:
        at = (at + 1) & trace.mask
    return trace.slots[at] - 1  # NO_PROCESS for an empty slot


# Number of an event's line in the trace.
cdef u64 event_line(const Trace *trace, const Event *event) noexcept nogil:
    return trace.chunks[event.chunk].first_line + event.line


# Order by time, then place in the trace: -1, 0 or 1.
cdef int compare_events(const Event *a, const Event *b) noexcept nogil:
    if a.time != b.time:
        return -1 if a.time < b.time else 1
    if a.chunk != b.chunk:
        return -1 if a.chunk < b.chunk else 1
    if a.line != b.line:
        return -1 if a.line < b.line else 1
    return 0


cdef void drop_dead(const Trace *trace, Process *process) noexcept nogil:
    cdef Event **link = &process.first
    cdef u32 n_steps = 0
    process.last = NULL
    process.n_events = 0
    while link[0] != NULL:
        spill_step(&trace.spill, &n_steps)
        if link[0].kind == DEAD:
            link[0] = link[0].next
        else:
            process.last = link[0]
            process.n_events += 1
            link = &link[0].next
