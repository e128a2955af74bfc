# SPDX-License-Identifier: Apache-2.0
# Columns of an image -> every use of a file, in no order.
from libetrace.types cimport s32, s64, u8, u32, u64
from libetrace.uses cimport RawUse


# Uses of files as columns; `until` may be NULL.
cdef struct UseColumns:
    const u32 *path
    const u32 *execution
    const s64 *begin
    const s64 *end
    const s64 *until
    const u8 *mode
    u64 n


cdef struct ProgramColumns:
    const s32 *binary  # path or -1
    const s64 *start
    u32 n


# Appends the uses of a table; rows count on from `n`. Returns how many there are now.
cdef u64 take_uses(const UseColumns *columns, RawUse *raw, u64 n) noexcept nogil
# Appends the programs of executions, read as they start: all, or those that a use of `raw` writes.
# `is_written` has a byte for each path, 0.
cdef u64 take_programs(const ProgramColumns *columns, const s64 *open_ns, const u32 *opener, u64 n_opens,
                       bint all_programs, u8 *is_written, RawUse *raw, u64 n) noexcept nogil
