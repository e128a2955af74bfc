# SPDX-License-Identifier: Apache-2.0
# Users of pipes to edges between executions.
from libetrace.core.memory cimport Buffer
from libetrace.trace.pipe_tables cimport Pipes
from libetrace.trace.trace cimport Trace

# Every writer of each pipe with every reader of it, unless that is too much work; -1 without memory.
cdef int cross_users(Pipes *pipes, Buffer *edges) noexcept nogil
# Gives the edges to the trace, in order, each once.
cdef void keep_edges(Trace *trace, Buffer *edges) noexcept nogil
