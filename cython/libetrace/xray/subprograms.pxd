# SPDX-License-Identifier: Apache-2.0
# Entries of functions in debug information.
from libetrace.core.types cimport u8, u64


# Scan any bytes as debug information, for the fuzzer: -1 without memory.
cdef int etrace_xray_debug_memory(const u8 *data, u64 size) noexcept nogil
