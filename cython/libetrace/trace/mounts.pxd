# SPDX-License-Identifier: Apache-2.0
# Names below mount points.
from libetrace.trace.trace cimport Trace


# Gives the files below the target of a bind mount, or of a second mount of one file system, the names
# that they have below its source. Names of threads are not joined yet. -1 when there is no memory.
cdef int join_mounts(Trace *trace) noexcept nogil
