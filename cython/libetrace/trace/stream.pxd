# SPDX-License-Identifier: Apache-2.0
# A trace that comes through a pipe: chunks of whole lines, in order, for any thread.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u64

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass


cdef struct Stream:
    int fd  # -1: the trace is in memory
    pthread_mutex_t lock
    Buffer rest  # begin of a line whose end has not come
    u64 n_bytes  # read so far
    bint is_over
    int error  # errno


cdef void stream_init(Stream *stream, int fd) noexcept nogil
cdef void stream_free(Stream *stream) noexcept nogil
cdef void stream_lock(Stream *stream) noexcept nogil
cdef void stream_unlock(Stream *stream) noexcept nogil
# Fills `text` with whole lines, `wanted` bytes or some more; none when the stream is over or
# cancelled[0] is set. -1: stream.error says why, or there is no memory.
cdef int stream_read(Stream *stream, Buffer *text, size_t wanted,
                     const u64 *cancelled) noexcept nogil
