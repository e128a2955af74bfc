# SPDX-License-Identifier: Apache-2.0
# Where the buffers of threads are in a Flight Data Recorder log.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, s64, u8, u16, u32, u64
from libetrace.xray.records cimport Header, Problems

cdef bint has_extents(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil


# One buffer of one thread.
cdef struct Block:
    u64 begin  # offsets of the file, of its first record and after the last
    u64 body  # after the records that begin it
    u64 end
    bint has_extents  # a record before `begin` that says how long it is
    u64 sequence  # in the file
    s64 wall_seconds
    s32 wall_microseconds
    s32 thread
    s32 process
    u16 cpu
    bint has_thread
    bint has_wall
    bint has_tsc
    u64 tsc  # of its first NewCPUId
    u64 first_record  # in the columns, once decoded
    u64 n_records


# Append the buffers of a log to `blocks`; -1 when there is no memory. What lost its frame or is in
# another buffer is found if `salvages`, else only as far as the frames say.
cdef int frame(const Header *header, const u8 *data, u64 size, bint salvages, Buffer *blocks,
               Problems *problems) noexcept nogil


# A log, its buffers and its problems.
cdef class Frames:
    cdef Header header
    cdef Buffer blocks  # Block
    cdef Problems problems

    cdef int find(self, const u8[::1] data, bint salvages) except -1


# Order them by process, thread and time.
cdef void sort_blocks(Buffer *blocks) noexcept nogil
