# SPDX-License-Identifier: Apache-2.0
# The limits of an image. A function that exceeds one notes it, and returns -1 as without memory.
from libetrace.core.types cimport u64

cdef enum:
    NO_LIMIT
    STRINGS
    STRING_BYTES  # of one string
    PROCESSES
    EXECUTIONS
    OPENS
    N_LIMITS

# How many of each there may be.
cdef u64 ceilings[N_LIMITS]

# Notes for this thread that a limit was passed; returns -1.
cdef int pass_limit(int limit) noexcept nogil
# The limit that this thread has passed, NO_LIMIT when it has passed none; forgets it.
cdef int take_limit() noexcept nogil
# The message for a limit.
cdef const char *limit_text(int limit) noexcept nogil
