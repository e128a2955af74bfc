# SPDX-License-Identifier: Apache-2.0
# Uses of files, sorted into lists by path and by process.
from libetrace.types cimport s64, u8, u32, u64

cdef enum:
    READS = 1
    WRITES = 2


# A use as the image has it; `end` is at least `begin`.
cdef struct RawUse:
    s64 begin
    s64 end
    u32 path
    u32 execution
    u32 row  # see Use
    u8 access  # READS | WRITES


# A use in a list, sorted by `key`: it counts for who comes with a limit of at least its key, and
# passes its own limit on to its target.
cdef struct Use:
    s64 key
    s64 limit
    u32 target  # a process in the list of a path, a path in the list of a process
    u32 execution
    u32 row  # of `opens`; beyond them inherited descriptors, then programs by execution


# One list for each owner: uses[start[i]:start[i + 1]].
cdef struct UseLists:
    u64 *start
    Use *uses
    u32 n


# Those uses that have one of `access`, by path (targets are processes) or by process. Mirrored
# time goes backwards: for who looks from a file to what was made of it. -1: no memory.
cdef int lists_init(UseLists *lists, u32 n_owners, const RawUse *raw, const u32 *order, u64 n_raw,
                    const u32 *process_of, u8 access, bint by_path,
                    bint is_mirrored) noexcept nogil
cdef void lists_free(UseLists *lists) noexcept nogil
# The numbers of the uses in order of begin, or of end backwards; NULL: no memory. To be freed.
cdef u32 *order_uses(const RawUse *raw, u64 n, bint is_mirrored) noexcept nogil
