# SPDX-License-Identifier: Apache-2.0
# Pipe links: from an execution that wrote a pipe to those that could read it.
from libetrace.core.memory cimport Buffer
from libetrace.trace.pipe_tables cimport Pipes
from libetrace.trace.trace cimport Trace

# Fills trace.edges; every family has been joined. -1 when there is no memory.
cdef int link_pipes(Trace *trace) noexcept nogil
