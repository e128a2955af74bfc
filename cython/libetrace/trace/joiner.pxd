# SPDX-License-Identifier: Apache-2.0
# Chunks into processes, and the strings of all threads into one list.
from libetrace.trace.trace cimport Trace

# -1 when there is no memory. Every chunk has been read.
cdef int join_processes(Trace *trace) noexcept nogil
# Parents, inherited commands, groups that share descriptor tables; every process has been verified.
cdef int join_families(Trace *trace) noexcept nogil
# -1 when there is no memory.
cdef int join_paths(Trace *trace) noexcept nogil
# Writes the JSON text of paths and looks them up until none is left; called by every thread.
cdef int prepare_paths(Trace *trace) noexcept nogil
