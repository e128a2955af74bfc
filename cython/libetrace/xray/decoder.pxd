# SPDX-License-Identifier: Apache-2.0
# Records of a log, in columns, or a piece of them at a time.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, u8, u16, u32, u64
from libetrace.xray.records cimport Header, Problems

# Where a value logged for a call belongs.
cdef struct Argument:
    u64 record
    u64 value


cdef struct Event:
    u64 record
    u64 offset  # of its payload in the file
    u32 n_bytes
    u16 type


# From this record on, its thread ran on that CPU.
cdef struct CpuRun:
    u64 record
    u16 cpu


# Where decoded records go: room for `size` of them, `n` are there.
cdef struct Sink:
    u64 *tsc
    u32 *function
    u8 *kind
    u64 size
    u64 n
    u64 first  # number of the first one in the log
    bint has_extras
    Buffer arguments
    Buffer events
    Buffer cpus


# The record before, in the same buffer.
cdef enum Before:
    NO_CALL = 0
    A_CALL = 1
    NO_RECORD = 2  # one that was skipped: arguments that follow were its own


# State of a thread from one of its buffers to the next.
cdef struct Cursor:
    u64 at  # offset in the file
    u64 body  # after the records that begin a buffer
    u64 end
    u64 tsc
    u16 cpu
    bint has_cpu
    u8 before  # whether arguments may come, and of what call


# Decode from the cursor on: 1 when there is no more room, 0 at the end of the buffer, -1 without memory.
cdef int decode(const Header *header, const u8 *data, Cursor *cursor, Sink *sink,
                Problems *problems) noexcept nogil
cdef void sink_free(Sink *sink) noexcept nogil
cdef int sink_allocate(Sink *sink, u64 size) noexcept nogil
# Fill `header`; False when the bytes are not a log of a known version.
cdef bint header_fill(const u8 *data, u64 size, Header *header) noexcept nogil
# The same, with words for what the bytes are instead.
cdef int read_header(const u8[::1] data, Header *header) except -1


# Records of one thread in the columns: [first, first + n).
cdef struct Thread:
    s32 process
    s32 thread
    u64 first_record
    u64 n_records


# All records by thread, in the order they have in the file; -1 without memory. `sink` has room for all.
cdef int decode_basic(const Header *header, const u8 *data, u64 size, Sink *sink, Buffer *threads,
                      Problems *problems) noexcept nogil
