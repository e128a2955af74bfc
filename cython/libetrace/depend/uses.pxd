# SPDX-License-Identifier: Apache-2.0
# Uses of files by row: opens, then other uses. Their paths and executions are in columns of an
# image.
from libetrace.core.types cimport s64, u8, u32, u64

cdef enum:
    READS = 1
    WRITES = 2
    LINK = 4  # a symbolic link's, with READS or WRITES: no process has it
    INHERITED = 8


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
