# SPDX-License-Identifier: Apache-2.0
# Columns of an image -> every use of a file, in no order.
from libetrace.core.types cimport s32, s64, u8, u32, u64
from libetrace.depend.uses cimport RawUse


cdef struct OpenColumns:
    const u32 *path
    const u32 *execution
    const s64 *begin
    const s64 *end
    const s64 *until  # -1: not known
    const u8 *mode
    u64 n


cdef struct ChangeColumns:
    const u32 *open
    const u8 *kind
    const s64 *time
    u64 n


# Paths of devices: [first, end) without the range of /dev/shm. What is written there is gone.
cdef struct Devices:
    u32 first
    u32 end
    u32 first_shared
    u32 end_shared
    const u8 *modes  # of all paths


cdef struct LinkColumns:
    const u32 *path
    const u32 *target
    const u32 *execution
    const s64 *time
    u64 n


cdef struct InheritedColumns:
    const u32 *path
    const u32 *execution
    const u8 *mode
    u64 n


cdef struct ExecutionColumns:
    const s32 *binary  # path or -1
    const s64 *start  # since the trace began
    const s64 *elapsed
    s64 first  # stamp at which the trace began
    u32 n


# The stamp at which the trace began, as far as the opens tell.
cdef s64 first_stamp(const ExecutionColumns *executions, const OpenColumns *opens) noexcept nogil
# Each appends its uses to `raw`, whose rows count on from `n`, and returns how many there are now.
cdef u64 take_opens(const OpenColumns *opens, const ChangeColumns *changes,
                    const Devices *devices, const ExecutionColumns *executions, RawUse *raw,
                    u64 n) noexcept nogil
cdef u64 take_inherited(const InheritedColumns *files, const ExecutionColumns *executions,
                        RawUse *raw, u64 n) noexcept nogil
# Programs of executions, read as they start: all, or those that a use of `raw` writes. `is_written`
# has a byte for each path, 0.
cdef u64 take_programs(const ExecutionColumns *executions, bint all_programs, u8 *is_written,
                       RawUse *raw, u64 n) noexcept nogil
# Symbolic links: each writes its name when it is made, and reads its target as long as the trace lasts.
cdef u64 take_links(const LinkColumns *links, u32 first_row, RawUse *raw, u64 n) noexcept nogil
