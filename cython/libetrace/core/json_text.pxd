# SPDX-License-Identifier: Apache-2.0
# Bytes as JSON text.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u64

# `bytes` as a JSON string with its quotes; -1 when there is no memory.
cdef int json_string(Buffer *out, const char *bytes, size_t len) noexcept nogil
# A literal of the program.
cdef int json_text(Buffer *out, const char *text) noexcept nogil
cdef int json_unsigned(Buffer *out, u64 value) noexcept nogil
