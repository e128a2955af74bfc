# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Writes JSON: valid UTF-8 whatever the bytes, by Python's surrogateescape convention."""
from libc.string cimport memcpy, strlen

from libetrace.core.memory cimport buffer_add, buffer_reserve
from libetrace.core.scan cimport (
    ETRACE_DIGITS_MAX, ETRACE_PAD, etrace_copy_plain, etrace_put_decimal, etrace_utf8_length,
)
from libetrace.core.types cimport u8

cdef const char *HEX = b"0123456789abcdef"
cdef const char *SHORT_CODES = b"btn?fr"  # of 0x08 to 0x0d; 0x0b has none
cdef enum:
    ESCAPE_BYTES = 6  # \uXXXX


cdef char *put_unicode(char *to, u8 high, u8 low) noexcept nogil:
    to[0] = c'\\'
    to[1] = c'u'
    to[2] = HEX[high >> 4]
    to[3] = HEX[high & 15]
    to[4] = HEX[low >> 4]
    to[5] = HEX[low & 15]
    return to + ESCAPE_BYTES


cdef char *put_backslash(char *to, char code) noexcept nogil:
    to[0] = c'\\'
    to[1] = code
    return to + 2


cdef char *put_odd(char *to, u8 byte) noexcept nogil:
    if byte >= 0x80:
        return put_unicode(to, 0xdc, byte)
    if byte == c'"' or byte == c'\\':
        return put_backslash(to, <char>byte)
    if 0x08 <= byte <= 0x0d and byte != 0x0b:
        return put_backslash(to, SHORT_CODES[byte - 0x08])
    return put_unicode(to, 0, byte)


cdef int json_string(Buffer *out, const char *bytes, size_t len) noexcept nogil:
    cdef size_t n
    cdef char *to
    if buffer_reserve(out, len + 2) < 0:
        return -1
    out.data[out.len] = c'"'
    out.len += 1
    while True:
        n = etrace_copy_plain(out.data + out.len, bytes, len)
        out.len += n
        bytes += n
        len -= n
        if not len:
            break
        if buffer_reserve(out, len + ESCAPE_BYTES + 1) < 0:
            return -1
        to = out.data + out.len
        n = etrace_utf8_length(bytes, len) if <u8>bytes[0] >= 0x80 else 0
        if n:
            memcpy(to, bytes, n)
            out.len += n
        else:
            n = 1
            out.len = put_odd(to, <u8>bytes[0]) - out.data
        bytes += n
        len -= n
    out.data[out.len] = c'"'
    out.len += 1
    return 0


cdef int json_text(Buffer *out, const char *text) noexcept nogil:
    return buffer_add(out, text, strlen(text))


cdef int json_unsigned(Buffer *out, u64 value) noexcept nogil:
    if buffer_reserve(out, ETRACE_DIGITS_MAX) < 0:
        return -1
    out.len = etrace_put_decimal(out.data + out.len, value) - out.data
    return 0
