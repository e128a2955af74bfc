# SPDX-License-Identifier: Apache-2.0
# Tables `environment` and `mounts` of a trace; strings are numbers of paths.
from libetrace.core.memory cimport Buffer
from libetrace.trace.trace cimport Trace

cdef int add_environment(Trace *trace, Buffer *columns) noexcept nogil
cdef int add_mounts(Trace *trace, Buffer *columns) noexcept nogil
