# SPDX-License-Identifier: Apache-2.0
# Which executions could read what an execution wrote to a pipe.
from libetrace.trace.trace cimport Trace

# Fills trace.edges; every family has been joined. -1 when there is no memory.
cdef int link_pipes(Trace *trace) noexcept nogil
