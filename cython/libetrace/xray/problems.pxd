# SPDX-License-Identifier: Apache-2.0
# The problems of a log: kind, offset, loss.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u8, u32, u64

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
    N_PROBLEM_KINDS


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
