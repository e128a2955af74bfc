# SPDX-License-Identifier: Apache-2.0
# Uses of files, sorted into lists by path and by process.
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Uses


# Writes the numbers of the stamps in order of time, backwards when mirrored. -1: no memory.
cdef int order_stamps(const s64 *stamps, u64 n, bint is_mirrored, u32 *order) noexcept nogil
# Writes to `start`, zero before, where the list of each owner ends; returns how long all are.
cdef u64 count_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, u64 *start,
                     u64 n_owners) noexcept nogil
# Fills the lists after count_lists: `start` goes down to where each begins.
cdef void fill_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, const u32 *order,
                     u64 *start, u32 *rows) noexcept nogil
# The same of pipes in one step: own and other execution, by the process that reads or writes.
cdef void deal_pipes(const u32 *process_of, u64 n_executions, u64 n_processes, const u64 *readers,
                     const u32 *reader, bint of_writers, u64 *start, u32 *own,
                     u32 *other) noexcept nogil
