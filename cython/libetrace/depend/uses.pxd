# SPDX-License-Identifier: Apache-2.0
# Uses of files, sorted into lists by path and by process.
from libetrace.core.types cimport s64, u8, u32, u64

cdef enum:
    READS = 1
    WRITES = 2
    LINK = 4  # a symbolic link's, with READS or WRITES: no process has it
    INHERITED = 8


# A use as the image has it; `end` is at least `begin`.
cdef struct RawUse:
    s64 begin
    s64 end
    u32 path
    u32 execution
    u32 row  # see Use
    u8 access  # READS | WRITES, and what it is of


# A use in a list, sorted by `key`: it counts for who comes with a limit of at least its key, and
# passes its own limit on to its target.
cdef struct Use:
    s64 key
    s64 limit
    u32 target  # a process in the list of a path, a path in the list of a process
    u32 execution
    u32 row  # of `opens`; then inherited descriptors, programs by execution, links by twos
    u32 node  # of the path: in the list of a process where it leads, of a path the last it is for


# What a name stood for came to an end.
cdef struct End:
    s64 time
    bint is_away  # the name is gone; else the file is new or empty


# A path with n ends has n + 1 contents, numbered over all paths: nodes. Those of a path are in order
# of time, mirrored ones backwards; whoever asks for any content asks for node first[p].
cdef struct Ends:
    u32 *first  # n_paths + 1
    End *ends  # those of path p begin at first[p] - p
    u32 *n_past  # ends of the path before its last content
    u32 n_paths


# Whom a use is of.
cdef struct Owners:
    const u32 *process_of  # by execution
    const Ends *ends
    u32 n_processes  # links have one each beyond them
    u32 first_link  # row


# One list for each owner: uses[start[i]:start[i + 1]].
cdef struct UseLists:
    u64 *start
    Use *uses
    u32 n


# Those uses that have one of `access`, by path (targets are processes) or by process. Mirrored
# time goes backwards: for who looks from a file to what was made of it. -1: no memory.
cdef int lists_init(UseLists *lists, u32 n_owners, const RawUse *raw, const u32 *order, u64 n_raw,
                    const Owners *owners, u8 access, bint by_path,
                    bint is_mirrored) noexcept nogil
cdef void lists_free(UseLists *lists) noexcept nogil
# The numbers of the uses in order of begin, or of end backwards; NULL: no memory. To be freed.
cdef u32 *order_uses(const RawUse *raw, u64 n, bint is_mirrored) noexcept nogil
