# SPDX-License-Identifier: Apache-2.0
# The distinct strings of all threads, sorted, with the results of lstat.
from libetrace.trace.trace cimport Trace

# -1 when there is no memory.
cdef int join_paths(Trace *trace) noexcept nogil
# Writes the JSON text of paths and looks them up until none is left; called by every thread.
cdef int prepare_paths(Trace *trace) noexcept nogil
