# SPDX-License-Identifier: Apache-2.0
# Chunks into processes.
from libetrace.trace.trace cimport Trace

# -1 when there is no memory. Every chunk has been read.
cdef int join_processes(Trace *trace) noexcept nogil
# Parents, inherited commands, groups that share descriptor tables; every process has been verified.
cdef int join_families(Trace *trace) noexcept nogil
