# SPDX-License-Identifier: Apache-2.0
# Rows of line tables for addresses that are asked for.
from libetrace.core.types cimport s64, u8, u64


# Addresses, ascending.
cdef struct Wanted:
    const u64 *at
    s64 n


# Read the rows of any bytes, for the fuzzer.
cdef void fuzz_rows(const u8 *data, u64 size, bint is_big, const Wanted *wanted) noexcept nogil
