# SPDX-License-Identifier: Apache-2.0
# A file that threads write in ranges: texts are made in any order, and placed in order.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u64

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass


cdef struct TextFile:
    int fd
    u64 offset  # of the range that is placed next
    u64 turn  # its number
    bint is_stopped  # a range will never come
    int error  # errno
    pthread_mutex_t lock
    pthread_cond_t moved


# Begins with a text.
cdef int file_begin(TextFile *file, int fd, const char *text) noexcept nogil
# Writes the text of a range after those before it, and waits for them; -1: file.error says why.
cdef int add_text(TextFile *file, u64 number, const Buffer *text) noexcept nogil
# Wakes those who wait for a range that will never come.
cdef void file_stop(TextFile *file) noexcept nogil
cdef int file_end(TextFile *file, const char *text) noexcept nogil
