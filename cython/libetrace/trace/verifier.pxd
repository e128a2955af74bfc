# SPDX-License-Identifier: Apache-2.0
# Order, followers, executions and forks of each process.
from libetrace.trace.trace cimport Trace

# Verifies processes until none is left; called by every thread. -1 when there is no memory.
cdef int verify_processes(Trace *trace, unsigned int worker) noexcept nogil
