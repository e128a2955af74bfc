# SPDX-License-Identifier: Apache-2.0
# JSON text, value by value. Every function that reads returns -1 when the text is wrong and leaves what
# is wrong in `error` and where in `at`.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u64

cdef struct Scanner:
    const char *at
    const char *end  # ETRACE_PAD readable bytes follow
    const char *error  # NULL as long as nothing is wrong
    Buffer text  # of the last string that had escapes


cdef void scanner_init(Scanner *scanner, const char *at, size_t size) noexcept nogil
cdef void scanner_free(Scanner *scanner) noexcept nogil
cdef int fail(Scanner *scanner, const char *error) noexcept nogil
# The opening bracket of an array or object.
cdef int scan_open(Scanner *scanner, char bracket) noexcept nogil
# 1: an element follows; 0: the closing bracket has been read.
cdef int scan_more(Scanner *scanner, char bracket, bint is_first) noexcept nogil
# A key and its colon: its first byte when it has one byte, 0 for any other.
cdef int scan_letter(Scanner *scanner) noexcept nogil
cdef int scan_key(Scanner *scanner, const char **bytes, size_t *len) noexcept nogil
# A string; its bytes stay until the next one is read. \udcXX is the byte XX.
cdef int scan_string(Scanner *scanner, const char **bytes, size_t *len) noexcept nogil
# A whole number from low to high; true is 1, false is 0.
cdef int scan_number(Scanner *scanner, s64 low, s64 high, s64 *value) noexcept nogil
cdef int scan_unsigned(Scanner *scanner, u64 *value) noexcept nogil
cdef int skip_value(Scanner *scanner) noexcept nogil
# Nothing but blanks follows.
cdef int scan_end(Scanner *scanner) noexcept nogil
# `bytes` as a JSON string with its quotes; -1 when there is no memory.
cdef int json_string(Buffer *out, const char *bytes, size_t len) noexcept nogil
# A literal of the program.
cdef int json_text(Buffer *out, const char *text) noexcept nogil
