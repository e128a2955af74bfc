# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Ranges of text into a file, by several threads.

The place of a range is known when the texts of those before it are made, so that writing needs no
waiting for writing.
"""
from libc.errno cimport EINTR, errno
from libc.string cimport memset, strlen

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_init(pthread_mutex_t *lock, void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    int pthread_cond_init(pthread_cond_t *cond, void *attributes)
    int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
    int pthread_cond_broadcast(pthread_cond_t *cond)

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void *bytes, size_t len, long long offset)


cdef int write_all(TextFile *file, const char *bytes, size_t len, u64 offset) noexcept nogil:
    cdef ssize_t n
    while len:
        n = pwrite(file.fd, bytes, len, <long long>offset)
        if n < 0 and errno == EINTR:
            continue
        if n < 0:
            file.error = errno
            return -1
        bytes += n
        len -= <size_t>n
        offset += <u64>n
    return 0


cdef int file_begin(TextFile *file, int fd, const char *text) noexcept nogil:
    memset(file, 0, sizeof(file[0]))
    pthread_mutex_init(&file.lock, NULL)
    pthread_cond_init(&file.moved, NULL)
    file.fd = fd
    return file_end(file, text)


# Waits for the place of a range and takes it; False when it will never come.
cdef bint take_place(TextFile *file, u64 number, size_t len, u64 *offset) noexcept nogil:
    cdef bint is_mine
    pthread_mutex_lock(&file.lock)
    while file.turn != number and not file.is_stopped:
        pthread_cond_wait(&file.moved, &file.lock)
    is_mine = file.turn == number
    if is_mine:
        offset[0] = file.offset
        file.offset += len
        file.turn += 1
    pthread_cond_broadcast(&file.moved)
    pthread_mutex_unlock(&file.lock)
    return is_mine


cdef int add_text(TextFile *file, u64 number, const Buffer *text) noexcept nogil:
    cdef u64 offset
    if not take_place(file, number, text.len, &offset):
        return 0
    return write_all(file, text.data, text.len, offset)


cdef void file_stop(TextFile *file) noexcept nogil:
    pthread_mutex_lock(&file.lock)
    file.is_stopped = True
    pthread_cond_broadcast(&file.moved)
    pthread_mutex_unlock(&file.lock)


cdef int file_end(TextFile *file, const char *text) noexcept nogil:
    file.offset += strlen(text)
    return write_all(file, text, strlen(text), file.offset - strlen(text))
