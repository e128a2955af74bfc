# SPDX-License-Identifier: Apache-2.0
# Lines of a chunk into events.
from libetrace.core.interned cimport Names
from libetrace.trace.trace cimport Chunk, Task
from libetrace.core.types cimport s64

# Reads all lines of the chunk; -1 when there is no memory. `data` has ETRACE_PAD bytes after its end.
cdef int read_chunk(Chunk *chunk) noexcept nogil
cdef void free_chunk(Chunk *chunk) noexcept nogil
# Text after the prefix of a line and its stamp; NULL when it has none.
cdef const char *parse_prefix(const char *line, const char *end, s64 *upid, s64 *time) noexcept nogil
