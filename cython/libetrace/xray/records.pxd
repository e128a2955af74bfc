# SPDX-License-Identifier: Apache-2.0
# One record of a Flight Data Recorder log, of any version and byte order (docs/xray.md); what is wrong.

from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s32, s64, u8, u16, u32, u64

cdef enum:
    MAX_PROBLEMS = 10000  # that are kept; more are counted


cdef enum ProblemKind:
    UNKNOWN_KIND
    UNKNOWN_ACTION
    NEGATIVE_SIZE
    RECORD_CUT_OFF
    GARBAGE
    JUNK_BETWEEN
    BUFFER_CUT_OFF
    NO_NEW_BUFFER
    NO_END_OF_BUFFER
    EMPTY_PREAMBLE
    UNKNOWN_RECORD_TYPE
    STRAY_ARGUMENT
    TRAILING_BYTES
    BUFFER_TOO_LONG
    NO_BUFFER_SIZE
    BUFFER_TOO_SHORT
    BUFFER_INSIDE
    NO_EXTENTS
    STRAY_PREAMBLE


cdef struct Problem:
    u64 offset  # of the file, where it begins
    u64 skipped_bytes
    u32 kind
    u32 number  # of the record kind, the action or the type


cdef struct Problems:
    Buffer kept  # Problem
    u64 n_problems
    u64 n_skipped_bytes


cdef void problem_add(Problems *problems, int kind, u64 offset, u64 skipped_bytes, u32 number) noexcept nogil
cdef void problems_free(Problems *problems) noexcept nogil
cdef list problems_list(const Problems *problems)


cdef enum:
    HEADER_BYTES = 32
    FUNCTION_BYTES = 8
    METADATA_BYTES = 16


# The kinds of records; the first ten are the numbers of the metadata kinds.
cdef enum What:
    NEW_BUFFER = 0
    END_OF_BUFFER = 1
    NEW_CPU_ID = 2
    TSC_WRAP = 3
    WALL_TIME = 4
    CUSTOM_EVENT = 5
    CALL_ARGUMENT = 6
    BUFFER_EXTENTS = 7
    TYPED_EVENT = 8
    PID = 9
    FUNCTION = 10
    # no records, but what is in their place
    BAD_KIND = 11
    BAD_ACTION = 12
    BAD_EVENT_SIZE = 13
    CUT_OFF = 14


# Kinds in the columns; the first four are the actions of a function record.
cdef enum Kind:
    ENTER = 0
    EXIT = 1
    TAIL_EXIT = 2
    ENTER_ARGS = 3
    KIND_CUSTOM = 4
    KIND_TYPED = 5


cdef struct Header:
    u16 version
    u16 type  # 0 basic, 1 FDR
    bint is_big
    u32 bits
    u64 frequency  # Hz
    u64 buffer_bytes  # of one thread buffer, FDR


cdef struct Record:
    int what
    u8 action
    bint is_delta  # of an event: `tsc` is added to the time before
    u16 number  # cpu, or type of a typed event
    u32 n_bytes  # with the payload of an event
    u32 function
    s32 id  # thread, process
    u64 tsc  # or argument, extents, seconds
    u64 payload_bytes


cdef inline u16 load16(const u8 *at, bint is_big) noexcept nogil:
    if is_big:
        return <u16>(at[0] << 8 | at[1])
    return <u16>(at[0] | at[1] << 8)


cdef inline u32 load32(const u8 *at, bint is_big) noexcept nogil:
    if is_big:
        return <u32>at[0] << 24 | <u32>at[1] << 16 | <u32>at[2] << 8 | at[3]
    return <u32>at[3] << 24 | <u32>at[2] << 16 | <u32>at[1] << 8 | at[0]


cdef inline u64 load64(const u8 *at, bint is_big) noexcept nogil:
    if is_big:
        return <u64>load32(at, True) << 32 | load32(at + 4, True)
    return <u64>load32(at + 4, False) << 32 | load32(at, False)


cdef inline bint is_metadata(u8 first, bint is_big) noexcept nogil:
    return first >> 7 if is_big else first & 1


cdef inline u8 metadata_kind(u8 first, bint is_big) noexcept nogil:
    return first & 0x7f if is_big else first >> 1


# Read the record at `at`; it ends at `end` at the latest.
cdef void record_read(const Header *header, const u8 *at, const u8 *end, Record *record) noexcept nogil
# Do sound records follow, or nothing? Then what is before `at` is skipped alone.
cdef bint goes_on(const Header *header, const u8 *data, u64 at, u64 end) noexcept nogil
# How many bytes `record`, which is at `at` and is not one, costs: its own, or all up to the end.
cdef u64 bad_bytes(const Header *header, const u8 *data, u64 at, u64 end, const Record *record) noexcept nogil
