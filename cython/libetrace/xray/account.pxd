# SPDX-License-Identifier: Apache-2.0
# For a fuzzer: everything that is done with the bytes of a log, without Python.
from libetrace.core.types cimport u8, u64

# 0, or -1 when there is no memory.
cdef int etrace_xray_account_memory(const u8 *data, u64 size) noexcept nogil
