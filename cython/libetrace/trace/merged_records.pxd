# SPDX-License-Identifier: Apache-2.0
# The records of a process in order of execution and path, and what those of one pair of paths come to.
from libetrace.core.memory cimport Buffer, Spill
from libetrace.core.types cimport s64, u32, u64, u8
from libetrace.trace.descriptors cimport Record, Use


# The sort key of a record.
cdef struct Key:
    u64 files
    u32 index
    u32 record


# The combined record of one pair of paths, and which records decided it.
cdef struct Merged:
    const Record *first
    s64 begin  # of the first use
    s64 last  # end of the last use
    bint has_changes
    u8 access
    const Record *earliest
    const Record *latest
    const Record *other  # the first one with another access


# Memory of a thread, used again for each process.
cdef struct Merging:
    Buffer keys
    Buffer spare
    Buffer kept  # u8 for each record
    Buffer uses  # Use, of a pair of paths
    Buffer write_ends  # s64, of an execution in order of time
    u64 fold_bytes  # of records, at which they are folded


cdef void merging_begin(Merging *merging, const Spill *spill) noexcept nogil
cdef void merging_free(Merging *merging) noexcept nogil
# Keys of the records in order, and one of no execution; NULL when there is no memory.
cdef const Key *sort_records(Merging *merging, const Buffer *records) noexcept nogil
# Combines all records of one pair of paths, from keys[0] on; returns their number.
cdef s64 merge_records(const Record *records, const Key *keys, Merged *merged) noexcept nogil
# Finds the ends of the writes of the execution of keys[0], in order of time.
cdef int find_write_ends(Merging *merging, const Record *records, const Key *keys) noexcept nogil
# The uses of n records in order of time; NULL when there is no memory.
cdef const Use *find_uses(Merging *merging, const Record *records, const Key *keys,
                          s64 n) noexcept nogil
# Keeps the records that decide what all of them are merged into, so that memory grows with the files
# that a process reads and with its writes, not with how often it reads them.
cdef int fold_records(Merging *merging, Buffer *buffer, const Spill *spill) noexcept nogil
