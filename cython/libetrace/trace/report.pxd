# SPDX-License-Identifier: Apache-2.0
# What went wrong, by kind: a count and the first lines.
from libetrace.core.types cimport u64

cdef enum:
    NO_PREFIX
    UNKNOWN_TAG
    BAD_ARGUMENTS
    WRONG_UPID
    STRAY_STRING
    BAD_STRING
    INCOMPLETE
    CUT_OFF
    NO_FOLLOWER
    NO_LEADER
    SECOND_PARENT
    NO_ENVIRONMENT
    LOST_EVENTS
    TOO_MANY_PIPES
    N_PROBLEMS

cdef enum:
    N_PROBLEM_LINES = 5


cdef struct Report:
    u64 count[N_PROBLEMS]
    u64 lines[N_PROBLEMS][N_PROBLEM_LINES]  # ascending, as many as counted


cdef void report_add(Report *report, int problem, u64 line, u64 count) noexcept nogil
cdef void report_merge(Report *into, const Report *other, u64 first_line) noexcept nogil
