# SPDX-License-Identifier: Apache-2.0
# The passes over a trace, in order.
from libetrace.trace.tables cimport Tables
from libetrace.trace.trace cimport Trace
from libetrace.core.types cimport u32

cdef enum:
    N_PASSES = 10

# One pass: -1 when there is no memory.
ctypedef int (*Pass)(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil

cdef int trace_init(Trace *trace, const char *data, size_t size, int fd, u32 n_workers,
                    size_t chunk_bytes) noexcept nogil
cdef void trace_free(Trace *trace) noexcept nogil
cdef bint is_threaded(int number) noexcept nogil
cdef int run_pass(int number, Trace *trace, Tables *tables, unsigned int worker) noexcept nogil
cdef int run_all(Trace *trace, Tables *tables) noexcept nogil
