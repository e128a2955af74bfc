# SPDX-License-Identifier: Apache-2.0
# The two files beside the database: environment and mounts.
from libetrace.core.memory cimport Buffer
from libetrace.trace.trace cimport Trace

# JSON text; -1 when there is no memory.
cdef int write_environment(Trace *trace, Buffer *out) noexcept nogil
cdef int write_mounts(Trace *trace, Buffer *out) noexcept nogil
