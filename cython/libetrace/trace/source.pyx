# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Traces as memory: a file is mapped, a pipe is read to its end, the parts of each CPU are merged.

A file that somebody else may cut is read like a pipe (libetrace.core.ownership).
"""
import os

from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from libetrace.core.memory cimport Buffer, buffer_free, buffer_reserve
from libetrace.trace.reader cimport parse_prefix
from libetrace.core.scan cimport ETRACE_PAD, etrace_find_newline
from libetrace.core.types cimport s64, u32, u64

from libetrace.core.ownership import may_be_mapped

cdef extern from "etrace/events.h" nogil:
    const char *ETRACE_FIRST_LINE

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
    FIRST_LINE_BYTES = 8

FIRST_LINE = <bytes>ETRACE_FIRST_LINE  # what the first line of a trace begins with


# One input of a merge: the line that comes next.
cdef struct Part:
    const char *at
    const char *end
    const char *line_end
    s64 time  # of the line, or of the last line that had one
    u64 line  # its number


# Where line number `wanted` of the merged trace comes from.
cdef struct Place:
    u64 wanted
    u32 part
    u64 line


cdef class Source:
    def __cinit__(self):
        self.data = NULL
        self.fd = -1

    def __dealloc__(self):
        if self.map != NULL:
            munmap(self.map, self.map_size)
        free(self.owned)
        if self.fd >= 0:
            os.close(self.fd)

    @classmethod
    def stream(cls, int fd):
        """Read a pipe while it is parsed, which can be done once; map a file. OSError."""
        cdef stat_result result
        if fstat(fd, &result) < 0:
            PyErr_SetFromErrno(OSError)
        if S_ISREG(result.st_mode):
            return cls.from_fd(fd)
        cdef Source source = Source.__new__(Source)
        source.fd = os.dup(fd)
        return source

    @classmethod
    def from_fd(cls, int fd, size_t limit=<size_t>-1):
        """Map a file; read a pipe, or a file that others may truncate, to its end.

        Raises OSError; OverflowError when a pipe gives more than `limit` bytes. A file that is
        mapped may grow meanwhile, but must not shrink.
        """
        cdef Source source = Source.__new__(Source)
        cdef stat_result result
        if fstat(fd, &result) < 0:
            PyErr_SetFromErrno(OSError)
        if not S_ISREG(result.st_mode):
            read_all(source, fd, 0, limit)
        elif not may_be_mapped(fd):
            os.lseek(fd, 0, os.SEEK_SET)  # as a map, which begins at the start
            read_all(source, fd, <size_t>result.st_size, <size_t>-1)
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
        """Merge traces by the stamps of their lines; equal ones in the order of `parts`.

        Each part keeps its own order. A line without a stamp stays behind the line before it; of
        several first lines (INITCWD=) the first counts. Takes memory for a copy of all.
        """
        cdef Source source = Source.__new__(Source)
        source.parts = [<Source?>part for part in parts]
        merge_parts(source)
        return source

    def locate(self, lines):
        """Say where lines come from: (number of the part, number of the line in it), from 0 and 1 on.

        `lines` must ascend. A source that is not merged has one part.
        """
        if self.parts is None:
            return [(0, line) for line in lines]
        return locate_lines(self, lines)


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


# Reads to the end, of which `expected` bytes are said to be there.
cdef int read_all(Source source, int fd, size_t expected, size_t limit) except -1:
    cdef Buffer buffer
    cdef ssize_t n
    memset(&buffer, 0, sizeof(buffer))
    if buffer_reserve(&buffer, expected + READ_BYTES) < 0:
        raise MemoryError
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
            if buffer.len > limit:
                buffer_free(&buffer)
                raise OverflowError(f"more than {limit} bytes")
        else:
            stop_reading(&buffer)


# Finds the end and the stamp of the line at part.at.
cdef void look_at_line(Part *part) noexcept nogil:
    cdef s64 upid
    part.line_end = etrace_find_newline(part.at, part.end)
    parse_prefix(part.at, part.line_end, &upid, &part.time)


cdef void next_line(Part *part) noexcept nogil:
    part.at = part.line_end + 1
    part.line += 1
    if part.at < part.end:
        look_at_line(part)


cdef bint has_first_line(const Part *part) noexcept nogil:
    return (part.line_end - part.at >= FIRST_LINE_BYTES
            and not memcmp(part.at, ETRACE_FIRST_LINE, FIRST_LINE_BYTES))


cdef void start_parts(Part *parts, u32 n) noexcept nogil:
    cdef bint seen = False
    cdef u32 i
    for i in range(n):
        if parts[i].at >= parts[i].end:
            continue
        look_at_line(&parts[i])
        if has_first_line(&parts[i]):
            if seen:
                next_line(&parts[i])
            seen = True


cdef Part *earliest(Part *parts, u32 n) noexcept nogil:
    cdef Part *best = NULL
    cdef u32 i
    for i in range(n):
        if parts[i].at < parts[i].end and (best == NULL or parts[i].time < best.time):
            best = &parts[i]
    return best


cdef int merge_lines(Part *parts, u32 n, Buffer *out) noexcept nogil:
    cdef Part *part
    cdef size_t len
    start_parts(parts, n)
    while True:
        part = earliest(parts, n)
        if part == NULL:
            return 0
        len = part.line_end - part.at
        if buffer_reserve(out, len + 1) < 0:
            return -1
        memcpy(out.data + out.len, part.at, len)
        out.data[out.len + len] = c'\n'
        out.len += len + 1
        next_line(part)


# Merges again, only to count. `places` ascend.
cdef void find_places(Part *parts, u32 n, Place *places, size_t n_places) noexcept nogil:
    cdef Part *part
    cdef u64 line = 0
    cdef size_t found = 0
    start_parts(parts, n)
    while found < n_places:
        part = earliest(parts, n)
        if part == NULL:
            return
        line += 1
        while found < n_places and places[found].wanted == line:
            places[found].part = <u32>(part - parts)
            places[found].line = part.line
            found += 1
        next_line(part)


cdef Part *make_parts(list sources) except NULL:
    cdef Part *parts = <Part *>malloc((len(sources) + 1) * sizeof(Part))
    cdef Source part
    cdef size_t i = 0
    if parts == NULL:
        raise MemoryError
    for part in sources:
        parts[i].at = part.data
        parts[i].end = part.data + part.size
        parts[i].time = -1
        parts[i].line = 1
        i += 1
    return parts


cdef int merge_parts(Source source) except -1:
    cdef Part *parts = make_parts(source.parts)
    cdef u32 n = <u32>len(source.parts)
    cdef Buffer out
    cdef int status
    memset(&out, 0, sizeof(out))
    with nogil:
        status = merge_lines(parts, n, &out)
    free(parts)
    if status < 0:
        buffer_free(&out)
        raise MemoryError
    return take_buffer(source, &out)


cdef list locate_lines(Source source, lines):
    cdef Part *parts = make_parts(source.parts)
    cdef size_t n = len(lines)
    cdef Place *places = <Place *>malloc((n + 1) * sizeof(Place))
    cdef size_t i
    if places == NULL:
        free(parts)
        raise MemoryError
    for i in range(n):
        places[i].wanted = lines[i]
        places[i].part = 0
        places[i].line = 0
    find_places(parts, <u32>len(source.parts), places, n)
    found = [(places[i].part, places[i].line) for i in range(n)]
    free(places)
    free(parts)
    return found
