# SPDX-License-Identifier: Apache-2.0
# Opened files of a descriptor table, the records that closing them makes, and their uses.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, s64, u8, u32, u64
from libetrace.trace.trace cimport Event, Trace

# Changes of a file or name besides reading and writing; the letters of CHANGE_LETTERS - 1.
cdef enum:
    NO_CHANGE
    EMPTIED
    RENAMED  # from another name
    LINKED  # to another name
    SYMLINKED  # to a text
    GONE  # renamed away
    BEGUN  # first use, when the record has another time
    EXCHANGED  # with another name, at the same time


# An Open whose Close has not come yet.
cdef struct OpenFile:
    bint is_used
    s32 fd
    u32 process
    u32 index  # of the execution
    u64 files  # numbers of the paths: original, then resolved
    s64 time
    u64 order
    u8 access
    u8 change  # EMPTIED or none
    bint is_copy  # by Dup: of the Open only the last use counts


# Opens so far, of all tables that may hold copies of them.
cdef struct OpenLog:
    u64 n_opens
    bint has_copies
    Buffer ended  # u8 for each, with copies


cdef struct Descriptors:
    OpenFile *slots
    u32 mask
    u32 n
    u64 seed
    OpenLog *log
    Buffer *records  # of all, or an array of them by process
    bint by_process


# One use of a file by an execution, in the order they were made.
cdef struct Record:
    u64 files
    s64 begin
    s64 end
    u32 index
    u32 name  # of a change: number of the path or text
    u8 access
    u8 change
    bint is_copy  # makes another record of the same last longer


cdef int descriptors_init(Descriptors *table, u64 seed, Buffer *records,
                          bint by_process, OpenLog *log) noexcept nogil
cdef void descriptors_free(Descriptors *table) noexcept nogil
cdef int descriptors_add(Descriptors *table, const OpenFile *file) noexcept nogil
# Appends the files that are still open to `files` (OpenFile).
cdef int descriptors_collect(const Descriptors *table, Buffer *files) noexcept nogil
# Records them in the order of opening, up to the last events of who opened them.
cdef int descriptors_end(Trace *trace, Descriptors *table, Buffer *files) noexcept nogil
cdef void descriptors_empty(Descriptors *table) noexcept nogil
# Applies an event to the files of the table; `before` is the previous event of its process.
cdef int apply_event(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
                     const Event *before) noexcept nogil


# One use, or several that nothing distinguishes.
cdef struct Use:
    s64 begin
    s64 end
    u32 record  # that it begins with
    u32 last  # record that it ends with
    u8 access


cdef inline s64 last_use(const Record *record) noexcept nogil:
    return max(record.begin, record.end)


# Adds the end of a write to the ends of an execution; records that read add none.
cdef int add_write_end(const Record *record, Buffer *ends) noexcept nogil
cdef void sort_stamps(Buffer *ends) noexcept nogil
# Sorts uses in order of time.
cdef void sort_uses(Use *uses, size_t n) noexcept nogil
# Whether a write ended from one time on and before another.
cdef bint has_end(const Buffer *ends, s64 begin, s64 before) noexcept nogil
# Combines the first of some sorted uses with those that belong to it; returns how many it took.
cdef size_t next_use(const Use *uses, size_t n, const Buffer *ends, Use *use) noexcept nogil
