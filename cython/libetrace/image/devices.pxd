# SPDX-License-Identifier: Apache-2.0
from libetrace.core.types cimport u32


# `mode` as in the columns of that name, 0 when it is not known.
cdef bint is_device_path(const char *bytes, size_t len, u32 mode) noexcept nogil
