# SPDX-License-Identifier: Apache-2.0
# A database while it is read: columns that grow. Strings and paths are numbers of `names`, references
# to executions are (upid, index); settle() of numbering.pyx makes rows of both.
from libetrace.core.memory cimport Buffer, buffer_reserve
from libetrace.core.interned cimport Names
from libetrace.image.schema cimport N_COLUMNS
from libetrace.core.types cimport s16, s32, s64, u8, u32, u64

cdef enum:
    NONE = -1


# An execution as JSON names it.
cdef struct Reference:
    s64 upid
    s64 index


# Facts about a name as a path.
cdef struct PathFacts:
    s64 size
    u8 mode
    bint is_path


cdef struct Draft:
    Names names
    Buffer facts  # PathFacts by name, zero beyond its end
    Buffer columns[N_COLUMNS]
    Buffer parents  # Reference of each execution
    Buffer readers  # Reference of each pipe reader
    Buffer wrappers  # upid of each execution's wrapper, NONE without
    Buffer mounters  # Reference of each mount
    s64 n_pattern_bytes  # of an execution; NONE: no execution has patterns
    bint has_wrappers
    bint has_usage  # some entry has the key a
    bint has_uses  # some open has the key u
    bint has_written  # some entry has the key y
    bint has_fork_times  # some child has the key t
    bint has_links
    bint has_compilations
    bint has_last_uses  # some entry has the key h


cdef int draft_init(Draft *draft) noexcept nogil
cdef void draft_free(Draft *draft) noexcept nogil
# Forgets all executions; names stay.
cdef int draft_clear(Draft *draft) noexcept nogil
# Number of a string, of a string that is a path; NONE when there is no memory.
cdef s64 draft_name(Draft *draft, const char *bytes, size_t len) noexcept nogil
cdef s64 draft_path(Draft *draft, const char *bytes, size_t len) noexcept nogil
cdef inline PathFacts *facts_of(Draft *draft, u32 name) noexcept nogil:
    return &(<PathFacts *>draft.facts.data)[name]

# ---- columns ----

# The bytes of a column, through the buffer protocol.
cdef class Column:
    cdef Buffer buffer

# Takes the memory of the buffer.
cdef Column make_column(Buffer *buffer)
# Numbers of names become rows: rows[0..n) are those of strings by number, rows[n..2n) of paths.
cdef void renumber_columns(Buffer *columns, const u32 *rows, u32 n) noexcept nogil
# The opens of each path by a counting sort: room for it, how many each has, where they begin, which.
cdef int begin_path_opens(Buffer *columns, size_t n_opens) noexcept nogil
cdef void count_path_opens(Buffer *columns, const Buffer *paths) noexcept nogil
cdef void sum_path_opens(Buffer *columns) noexcept nogil
cdef void place_path_opens(Buffer *columns, const Buffer *paths, u32 first) noexcept nogil

cdef inline int add8(Buffer *column, u8 value) noexcept nogil:
    if buffer_reserve(column, 1) < 0:
        return -1
    (<u8 *>(column.data + column.len))[0] = value
    column.len += 1
    return 0

cdef inline int add16(Buffer *column, s16 value) noexcept nogil:
    if buffer_reserve(column, 2) < 0:
        return -1
    (<s16 *>(column.data + column.len))[0] = value
    column.len += 2
    return 0

cdef inline int add32(Buffer *column, s32 value) noexcept nogil:
    if buffer_reserve(column, 4) < 0:
        return -1
    (<s32 *>(column.data + column.len))[0] = value
    column.len += 4
    return 0

cdef inline int add64(Buffer *column, s64 value) noexcept nogil:
    if buffer_reserve(column, 8) < 0:
        return -1
    (<s64 *>(column.data + column.len))[0] = value
    column.len += 8
    return 0

cdef inline int add_reference(Buffer *column, Reference reference) noexcept nogil:
    if buffer_reserve(column, sizeof(Reference)) < 0:
        return -1
    (<Reference *>(column.data + column.len))[0] = reference
    column.len += sizeof(Reference)
    return 0
