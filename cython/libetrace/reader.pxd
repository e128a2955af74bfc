# SPDX-License-Identifier: Apache-2.0
# Lines of a chunk into events.
from libetrace.records cimport Chunk, Task
from libetrace.types cimport s64

# Reads all lines of the chunk; -1 when there is no memory. `data` has ETRACE_PAD bytes after its end.
cdef int read_chunk(Chunk *chunk) noexcept nogil
cdef void free_chunk(Chunk *chunk) noexcept nogil
# The task of a upid, NULL when it has none in this chunk.
cdef Task *find_task(Chunk *chunk, s64 upid) noexcept nogil
