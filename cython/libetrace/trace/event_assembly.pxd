# SPDX-License-Identifier: Apache-2.0
# Joins an event with the strings on the lines after it.
from libetrace.trace.line_grammar cimport Values
from libetrace.trace.trace cimport Assembly, Chunk, Task
from libetrace.core.types cimport s64, u32, u64

# Every function returns -1 when there is no memory.
cdef int begin_event(Chunk *chunk, Task *task, u32 code, const Values *values, s64 time,
                     u32 cpu, u32 line) noexcept nogil
cdef int add_string(Chunk *chunk, Task *task, u32 name) noexcept nogil
cdef int add_line(Chunk *chunk, Task *task, u32 code, const char *text, const char *end,
                  u64 line) noexcept nogil
cdef int lose_event_line(Chunk *chunk, Task *task) noexcept nogil
cdef int finish_event(Chunk *chunk, Task *task, int problem) noexcept nogil
# Whether the trace may go on with UPID or Env lines of the same group.
cdef bint waits_for_variable(const Assembly *assembly) noexcept nogil
# Copies the needed text of a chunk that is about to be freed.
cdef int keep_text(Task *task) noexcept nogil
cdef void free_task(Task *task) noexcept nogil
