# SPDX-License-Identifier: Apache-2.0
# Records of XRay's basic mode.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, u8, u64
from libetrace.xray.problems cimport Problems
from libetrace.xray.decoder cimport Sink
from libetrace.xray.records cimport Header


# Records of one thread in the columns: [first, first + n).
cdef struct Thread:
    s32 process
    s32 thread
    u64 first_record
    u64 n_records


# All records by thread, in the order they have in the file; -1 without memory. `sink` has room for all.
cdef int decode_basic(const Header *header, const u8 *data, u64 size, Sink *sink, Buffer *threads,
                      Problems *problems) noexcept nogil
