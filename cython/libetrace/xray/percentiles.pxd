# SPDX-License-Identifier: Apache-2.0
# Median, 90th and 99th percentile of 64-bit values.
from libetrace.core.types cimport u64

cdef enum:
    N_PERCENTILES = 3

# Into `percentiles`; the order of `values` changes. `state` of a random generator is not 0. -1 without memory.
cdef int take_percentiles(u64 *values, u64 n, u64 *percentiles, u64 *state) noexcept nogil
