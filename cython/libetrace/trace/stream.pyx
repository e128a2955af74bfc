# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads a pipe in chunks of whole lines, so that no more of a trace is in memory than is being parsed."""
from libc.errno cimport EINTR, errno
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve
from libetrace.core.scan cimport ETRACE_PAD, etrace_peek

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
