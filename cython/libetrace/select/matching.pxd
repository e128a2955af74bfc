# SPDX-License-Identifier: Apache-2.0
# Tests of text: a part, a wildcard, a regular expression, a directory.
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport u8, u32, u64

cdef enum TextTest:
    HAS_PART
    MATCHES_WILDCARD
    MATCHES_EXPRESSION
    IS_UNDER


cdef class Matcher:
    cdef TextTest test
    cdef bytes needle
    cdef object expression  # compiled

    cdef int narrow_strings(
        self, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
    ) except -1
    cdef int narrow_commands(
        self, Mapped columns, const u32 *executions, u64 n, bint negate, u8 *keep
    ) except -1


cdef Matcher make_matcher(TextTest test, object value)
