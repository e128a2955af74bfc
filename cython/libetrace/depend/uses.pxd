# SPDX-License-Identifier: Apache-2.0
# Uses of files by row: opens, then other uses. Their paths and executions are in columns of an
# image. When the contents of a name ended: docs/dependencies.md.
from libetrace.core.types cimport s32, s64, u8, u32, u64

cdef enum:
    READS = 1
    WRITES = 2
    LINK = 4  # a symbolic link's, with READS or WRITES: no process has it
    INHERITED = 8

# Kinds of changes.
cdef enum:
    RENAMED = 2
    LINKED = 3
    SYMLINKED = 4
    GONE = 5
    EXCHANGED = 7


# A use that has a row of its own anyway.
cdef struct Span:
    s64 begin
    s64 end
    u8 access  # READS, WRITES


# A use beyond the first one of an open.
cdef struct Other:
    s64 begin
    s64 end
    u32 path
    u32 execution
    u32 process
    u8 kind


# What came to a process from another one but through files: through pipes, and with a fork.
cdef struct Link:
    s64 time  # of the fork, -1 for a pipe
    u32 reader  # execution, or the child
    u32 writer  # execution, or the parent
    u32 reader_process
    u32 writer_process


cdef struct Links:
    const Link *all
    u64 n


# Times are by row; row i of the opens is use i, the rest are the `others`.
cdef struct Uses:
    const s64 *begin
    const s64 *end  # at least `begin`
    u64 n
    u64 n_opens
    const u32 *open_path
    const u32 *open_execution
    const u32 *process_of  # by execution
    const u32 *other_path
    const u32 *other_execution
    const u32 *other_process  # links have one each beyond those of executions
    const u8 *other_kind


cdef inline u32 path_of(const Uses *uses, u64 row) noexcept nogil:
    return uses.open_path[row] if row < uses.n_opens else uses.other_path[row - uses.n_opens]


cdef inline u32 execution_of(const Uses *uses, u64 row) noexcept nogil:
    if row < uses.n_opens:
        return uses.open_execution[row]
    return uses.other_execution[row - uses.n_opens]


cdef inline u32 process_of(const Uses *uses, u64 row) noexcept nogil:
    if row < uses.n_opens:
        return uses.process_of[uses.open_execution[row]]
    return uses.other_process[row - uses.n_opens]


cdef inline u8 kind_of(const Uses *uses, u64 row) noexcept nogil:
    return 0 if row < uses.n_opens else uses.other_kind[row - uses.n_opens]


# Those of path p are [start[p], start[p + 1]), in order of time. A path with n ends has n + 1
# contents, numbered from 0 in order of time, mirrored ones backwards.
cdef struct Ends:
    const u64 *start  # n_paths + 1
    const s64 *time
    const u8 *is_away  # the name is gone; else the file is new or empty
    const u32 *last  # number of the last content that something wrote, by path
    u64 n


cdef inline u32 n_ends(const Ends *ends, u32 path) noexcept nogil:
    return <u32>(ends.start[path + 1] - ends.start[path])


# The content of `path` that a use is of: the one that a read begins with, the last that a write
# gives to.
cdef u32 content_of(const Ends *ends, const Uses *uses, u64 row, u32 path, bint is_write,
                    bint is_mirrored) noexcept nogil
# Writes `last`, from the writes of all paths: writes[starts[p]:starts[p + 1]] are those of p.
cdef void find_last_contents(const Ends *ends, const Uses *uses, u32 n_paths, const u64 *starts,
                             const u32 *writes, u32 *last) noexcept nogil


cdef struct Executions:
    const s64 *upid
    const u64 *children_start  # n + 1, into child and flags
    const s32 *child  # execution or -1
    const u64 *flags  # of clone
    const s32 *wrapper  # execution or -1; NULL: each process is its own
    u32 n


# Writes the process of each execution, numbered in order of first executions; returns how many.
cdef u32 number_processes(const Executions *executions, u32 *process_of) noexcept nogil
# Writes the numbers of the stamps in order of time, backwards when mirrored. -1: no memory.
cdef int order_stamps(const s64 *stamps, u64 n, bint is_mirrored, u32 *order) noexcept nogil
# Writes to `start`, zero before, where the list of each owner ends; returns how long all are.
cdef u64 count_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, u64 *start,
                     u64 n_owners) noexcept nogil
# Fills the lists after count_lists: `start` goes down to where each begins.
cdef void fill_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, const u32 *order,
                     u64 *start, u32 *rows) noexcept nogil
# The same of links in one step: own and other execution, the other's process, and the time, by the
# process that reads or writes.
cdef void deal_links(const Links *links, u64 n_processes, bint of_writers, u64 *start, u32 *own,
                     u32 *other, u32 *process, s64 *time) noexcept nogil
