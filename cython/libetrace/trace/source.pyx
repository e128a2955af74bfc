# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Traces as memory: a file is mapped, a pipe is read to its end, the parts of each CPU are merged.

A file that somebody else may cut is read like a pipe (libetrace.core.regular_file).
"""
import os

from cpython.exc cimport PyErr_SetFromErrno
from libc.string cimport memcmp, memcpy

from libetrace.trace.reader cimport parse_prefix
from libetrace.core.scan cimport ETRACE_PAD, etrace_find_newline
from libetrace.core.types cimport s64, u32, u64

from libetrace.core.regular_file import may_be_mapped

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

cdef enum:
    PAGE_BYTES = 4096
    READ_BYTES = 1 << 20
    FIRST_LINE_BYTES = 8
    BEFORE_ALL = -2

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
    def from_fd(cls, int fd, limit=None):
        """Map a file; read a pipe, or a file that others may truncate, to its end.

        Raises OSError; OverflowError when a pipe gives more than `limit` bytes. A file that is
        mapped may grow meanwhile, but must not shrink.
        """
        cdef Source source = Source.__new__(Source)
        cdef stat_result result
        if fstat(fd, &result) < 0:
            PyErr_SetFromErrno(OSError)
        if not S_ISREG(result.st_mode):
            own(source, read_all(fd, limit))
        elif not may_be_mapped(fd):
            os.lseek(fd, 0, os.SEEK_SET)  # as a map, which begins at the start
            own(source, read_all(fd, None))
        elif result.st_size:
            map_file(source, fd, <size_t>result.st_size)
        else:
            own(source, bytearray())
        return source

    @classmethod
    def from_bytes(cls, bytes data not None):
        """Copy a trace that is in memory."""
        cdef Source source = Source.__new__(Source)
        own(source, bytearray(data))
        return source

    @classmethod
    def merge(cls, parts):
        """Merge traces by the stamps of their lines; equal ones in the order of `parts`.

        Each part keeps its own order. A line without a stamp stays after the line before it; of
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


# A page of zeros is after the file, so that reading beyond its end is not a fault.
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


cdef int own(Source source, bytearray data) except -1:
    source.size = <size_t>len(data)
    data += bytes(ETRACE_PAD)
    source.owned = data
    source.data = data
    return 0


# Reads to the end.
cdef bytearray read_all(int fd, limit):
    cdef bytearray data = bytearray()
    while piece := os.read(fd, READ_BYTES):
        data += piece
        if limit is not None and len(data) > limit:
            raise OverflowError(f"more than {limit} bytes")
    return data


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
            else:
                parts[i].time = BEFORE_ALL  # a part may begin with a line without a stamp
            seen = True


cdef Part *earliest(Part *parts, u32 n) noexcept nogil:
    cdef Part *best = NULL
    cdef u32 i
    for i in range(n):
        if parts[i].at < parts[i].end and (best == NULL or parts[i].time < best.time):
            best = &parts[i]
    return best


# Writes all lines to `to`; returns where they end.
cdef char *merge_lines(Part *parts, u32 n, char *to) noexcept nogil:
    cdef Part *part
    cdef size_t len
    start_parts(parts, n)
    while True:
        part = earliest(parts, n)
        if part == NULL:
            return to
        len = part.line_end - part.at
        memcpy(to, part.at, len)
        to[len] = c'\n'
        to += len + 1
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


cdef bytearray make_parts(list sources):
    cdef bytearray memory = bytearray((len(sources) + 1) * sizeof(Part))
    cdef Part *parts = <Part *><char *>memory
    cdef Source part
    cdef size_t i = 0
    for part in sources:
        parts[i].at = part.data
        parts[i].end = part.data + part.size
        parts[i].time = -1
        parts[i].line = 1
        i += 1
    return memory


cdef int merge_parts(Source source) except -1:
    cdef bytearray memory = make_parts(source.parts)
    cdef Part *parts = <Part *><char *>memory
    cdef u32 n = <u32>len(source.parts)
    cdef Source part
    cdef size_t most = n  # the last line of each may lack its newline
    cdef bytearray out
    cdef char *begin
    cdef char *end
    for part in source.parts:
        most += part.size
    out = bytearray(most)
    begin = out
    with nogil:
        end = merge_lines(parts, n, begin)
    del out[end - begin:]
    return own(source, out)


cdef list locate_lines(Source source, lines):
    cdef bytearray parts = make_parts(source.parts)
    cdef size_t n = len(lines)
    cdef bytearray memory = bytearray((n + 1) * sizeof(Place))
    cdef Place *places = <Place *><char *>memory
    cdef size_t i
    for i in range(n):
        places[i].wanted = lines[i]
    find_places(<Part *><char *>parts, <u32>len(source.parts), places, n)
    return [(places[i].part, places[i].line) for i in range(n)]
