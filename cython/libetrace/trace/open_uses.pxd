# SPDX-License-Identifier: Apache-2.0
# The uses of one pair of paths by one execution, apart.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u8, u32
from libetrace.trace.descriptors cimport Record


# One use, or several that nothing tells apart.
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
