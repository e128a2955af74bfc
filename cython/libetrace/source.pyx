# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Traces as memory: a file is mapped, a pipe is read to its end."""
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from libetrace.memory cimport Buffer, buffer_free, buffer_reserve
from libetrace.scan cimport ETRACE_PAD

cdef extern from "<sys/mman.h>" nogil:
    enum: PROT_READ, MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE
    void *MAP_FAILED
    void *mmap(void *at, size_t size, int protection, int flags, int fd, long long offset)
    int munmap(void *at, size_t size)

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct stat_result "struct stat":
        unsigned int st_mode
        long long st_size
    int fstat(int fd, stat_result *result)
    bint S_ISREG(unsigned int mode)

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void *buffer, size_t size)

cdef enum:
    PAGE_BYTES = 4096
    READ_BYTES = 1 << 20


cdef class Source:
    def __cinit__(self):
        self.data = NULL

    def __dealloc__(self):
        if self.map != NULL:
            munmap(self.map, self.map_size)
        free(self.owned)

    @classmethod
    def from_fd(cls, int fd):
        """Map a file, or read a pipe to its end.

        Raises OSError. The file may grow meanwhile, but must not shrink.
        """
        cdef Source source = Source.__new__(Source)
        cdef stat_result result
        if fstat(fd, &result) < 0:
            PyErr_SetFromErrno(OSError)
        if not S_ISREG(result.st_mode):
            read_all(source, fd)
        elif result.st_size:
            map_file(source, fd, <size_t>result.st_size)
        else:
            copy_bytes(source, b"", 0)
        return source

    @classmethod
    def from_bytes(cls, bytes data not None):
        """Copy a trace that is in memory."""
        cdef Source source = Source.__new__(Source)
        copy_bytes(source, data, len(data))
        return source

    @classmethod
    def merge(cls, parts):
        """Put the files of a trace together, which the parser reads as if sorted by time.

        Equal stamps stand in the order of `parts`; no event goes on in another part.
        """
        cdef Source source = Source.__new__(Source)
        cdef Source part
        source.parts = [<Source?>part for part in parts]
        for part in source.parts:
            source.size += part.size
        return source


# A page of zeros lies behind the file, so that reading beyond its end is no fault.
cdef int map_file(Source source, int fd, size_t size) except -1:
    cdef size_t pages = (size + PAGE_BYTES - 1) & ~<size_t>(PAGE_BYTES - 1)
    cdef void *map = mmap(NULL, pages + PAGE_BYTES, PROT_READ,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    if map == MAP_FAILED:
        PyErr_SetFromErrno(OSError)
    source.map = map
    source.map_size = pages + PAGE_BYTES
    if mmap(map, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED:
        PyErr_SetFromErrno(OSError)
    source.data = <const char *>map
    source.size = size
    source.is_mapped = True
    return 0


cdef int copy_bytes(Source source, const char *data, size_t size) except -1:
    source.owned = <char *>malloc(size + ETRACE_PAD)
    if source.owned == NULL:
        raise MemoryError
    memcpy(source.owned, data, size)
    memset(source.owned + size, 0, ETRACE_PAD)
    source.data = source.owned
    source.size = size
    return 0


cdef int take_buffer(Source source, Buffer *buffer) except -1:
    if buffer_reserve(buffer, 1) < 0:
        buffer_free(buffer)
        raise MemoryError
    memset(buffer.data + buffer.len, 0, ETRACE_PAD)
    source.owned = buffer.data
    source.data = buffer.data
    source.size = buffer.len
    return 0


# After a read that failed: goes on only when it was a signal whose handler raises nothing.
cdef int stop_reading(Buffer *buffer) except -1:
    cdef bint was_interrupted = errno == EINTR
    try:
        if was_interrupted:
            PyErr_CheckSignals()
        else:
            PyErr_SetFromErrno(OSError)
    except BaseException:
        buffer_free(buffer)
        raise
    return 0


cdef int read_all(Source source, int fd) except -1:
    cdef Buffer buffer
    cdef ssize_t n
    memset(&buffer, 0, sizeof(buffer))
    while True:
        if buffer_reserve(&buffer, READ_BYTES) < 0:
            buffer_free(&buffer)
            raise MemoryError
        with nogil:
            n = read(fd, buffer.data + buffer.len, READ_BYTES)
        if n == 0:
            return take_buffer(source, &buffer)
        if n > 0:
            buffer.len += <size_t>n
        else:
            stop_reading(&buffer)
