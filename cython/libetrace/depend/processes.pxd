# SPDX-License-Identifier: Apache-2.0
# Executions -> processes: what shares memory, or a wrapping shell, is one.
from libetrace.core.types cimport s32, s64, u32, u64


cdef struct Executions:
    const s64 *upid
    const u64 *children_start  # n + 1, into child and flags
    const s32 *child  # execution or -1
    const u64 *flags  # of clone
    const s32 *wrapper  # execution or -1; NULL: each process is its own
    u32 n


# Writes the process of each execution, numbered in order of first executions; returns how many.
cdef u32 number_processes(const Executions *executions, u32 *process_of) noexcept nogil
