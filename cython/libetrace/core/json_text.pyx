# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads and writes JSON text (RFC 8259) without making objects of its values.

More lenient than the RFC where real databases need it: control characters and bytes that are not
UTF-8 may be in strings unchanged, and `\\udcXX` alone is the byte XX (Python's surrogateescape).
What is written is valid UTF-8 whatever the bytes, by the same convention.
"""
from libc.string cimport memcmp, memcpy, memset, strlen

from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve
from libetrace.core.scan cimport (
    etrace_copy_plain, etrace_decimal, etrace_find_text_end, etrace_utf8_length,
)
from libetrace.core.types cimport INT64_MAX, u8, u32

cdef enum:
    MAX_DEPTH = 512
    HEX_DIGITS = 4
    UTF8_BYTES = 4


cdef void scanner_init(Scanner *scanner, const char *at, size_t size) noexcept nogil:
    memset(scanner, 0, sizeof(scanner[0]))
    scanner.at = at
    scanner.end = at + size


cdef void scanner_free(Scanner *scanner) noexcept nogil:
    buffer_free(&scanner.text)


cdef int fail(Scanner *scanner, const char *error) noexcept nogil:
    if scanner.error == NULL:
        scanner.error = error
    return -1


cdef inline char skip_blanks(Scanner *scanner) noexcept nogil:
    while scanner.at < scanner.end and (scanner.at[0] == c' ' or scanner.at[0] == c'\n'
                                        or scanner.at[0] == c'\r' or scanner.at[0] == c'\t'):
        scanner.at += 1
    return scanner.at[0] if scanner.at < scanner.end else 0


cdef int scan_open(Scanner *scanner, char bracket) noexcept nogil:
    if skip_blanks(scanner) != bracket:
        return fail(scanner, b"not an array" if bracket == c'[' else b"not an object")
    scanner.at += 1
    return 0


cdef int scan_more(Scanner *scanner, char bracket, bint is_first) noexcept nogil:
    cdef char found = skip_blanks(scanner)
    if found == bracket:
        scanner.at += 1
        return 0
    if is_first:
        return 1
    if found != c',':
        return fail(scanner, b"neither a comma nor the closing bracket")
    scanner.at += 1
    return 1


cdef int scan_key(Scanner *scanner, const char **bytes, size_t *len) noexcept nogil:
    if skip_blanks(scanner) != c'"':
        return fail(scanner, b"not a key")
    if scan_string(scanner, bytes, len) < 0:
        return -1
    if skip_blanks(scanner) != c':':
        return fail(scanner, b"no colon after a key")
    scanner.at += 1
    return 0


cdef int scan_letter(Scanner *scanner) noexcept nogil:
    cdef const char *at = scanner.at
    cdef const char *bytes
    cdef size_t len
    if at + 4 <= scanner.end and at[0] == c'"' and at[2] == c'"' and at[3] == c':' \
            and at[1] != c'\\' and at[1] != c'"':
        scanner.at = at + 4
        return <unsigned char>at[1]
    if scan_key(scanner, &bytes, &len) < 0:
        return -1
    return <unsigned char>bytes[0] if len == 1 else 0


# ---- strings ----


cdef int hex_value(char digit) noexcept nogil:
    if c'0' <= digit <= c'9':
        return digit - c'0'
    digit |= 0x20
    return digit - c'a' + 10 if c'a' <= digit <= c'f' else -1


# XXXX of \uXXXX, scanner.at before them.
cdef int scan_unit(Scanner *scanner) noexcept nogil:
    cdef int unit = 0
    cdef int digit
    cdef int i
    for i in range(HEX_DIGITS):
        digit = hex_value(scanner.at[0]) if scanner.at < scanner.end else -1
        if digit < 0:
            return fail(scanner, b"\\u without four hexadecimal digits")
        unit = unit << 4 | digit
        scanner.at += 1
    return unit


cdef int put_utf8(Buffer *text, u32 code) noexcept nogil:
    cdef char *to
    cdef int n = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    cdef int i
    if buffer_reserve(text, UTF8_BYTES) < 0:
        return -1
    to = text.data + text.len
    for i in range(n - 1, 0, -1):
        to[i] = <char>(0x80 | (code & 0x3f))
        code >>= 6
    to[0] = <char>(code if n == 1 else (0xf0 << (4 - n) & 0xff) | code)
    text.len += n
    return 0


cdef int add_byte(Scanner *scanner, char byte) noexcept nogil:
    if buffer_add(&scanner.text, &byte, 1) < 0:
        return fail(scanner, b"not enough memory")
    return 0


# What follows \u.
cdef int unescape_unicode(Scanner *scanner) noexcept nogil:
    cdef int code = scan_unit(scanner)
    cdef int low
    if code < 0:
        return -1
    if 0xdc80 <= code <= 0xdcff:
        return add_byte(scanner, <char>(code & 0xff))
    if 0xd800 <= code <= 0xdbff and scanner.end - scanner.at >= 2 \
            and not memcmp(scanner.at, b"\\u", 2):
        scanner.at += 2
        low = scan_unit(scanner)
        if low < 0:
            return -1
        if not 0xdc00 <= low <= 0xdfff:
            return fail(scanner, b"half a surrogate pair")
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
    elif 0xd800 <= code <= 0xdfff:
        return fail(scanner, b"half a surrogate pair")
    if put_utf8(&scanner.text, <u32>code) < 0:
        return fail(scanner, b"not enough memory")
    return 0


# What follows a backslash.
cdef int unescape(Scanner *scanner) noexcept nogil:
    cdef char code = scanner.at[0] if scanner.at < scanner.end else 0
    scanner.at += 1
    if code == c'u':
        return unescape_unicode(scanner)
    if code == c'"' or code == c'\\' or code == c'/':
        return add_byte(scanner, code)
    if code == c'n':
        return add_byte(scanner, c'\n')
    if code == c't':
        return add_byte(scanner, c'\t')
    if code == c'r':
        return add_byte(scanner, c'\r')
    if code == c'b':
        return add_byte(scanner, 0x08)
    if code == c'f':
        return add_byte(scanner, 0x0c)
    return fail(scanner, b"an unknown escape")


# The rest of a string that has escapes; scanner.at is where its text begins.
cdef int scan_escaped(Scanner *scanner) noexcept nogil:
    cdef const char *stop
    scanner.text.len = 0
    while True:
        stop = etrace_find_text_end(scanner.at, scanner.end)
        if stop == scanner.end:
            return fail(scanner, b"a string without an end")
        if buffer_add(&scanner.text, scanner.at, stop - scanner.at) < 0:
            return fail(scanner, b"not enough memory")
        scanner.at = stop + 1
        if stop[0] == c'"':
            return 0
        if unescape(scanner) < 0:
            return -1


cdef int scan_string(Scanner *scanner, const char **bytes, size_t *len) noexcept nogil:
    cdef const char *stop
    if skip_blanks(scanner) != c'"':
        return fail(scanner, b"not a string")
    scanner.at += 1
    stop = etrace_find_text_end(scanner.at, scanner.end)
    if stop == scanner.end:
        return fail(scanner, b"a string without an end")
    if stop[0] == c'"':
        bytes[0] = scanner.at
        len[0] = stop - scanner.at
        scanner.at = stop + 1
        return 0
    if scan_escaped(scanner) < 0:
        return -1
    bytes[0] = scanner.text.data
    if bytes[0] == NULL:  # an empty one (nothing was ever added) has no data: any address does
        bytes[0] = stop
    len[0] = scanner.text.len
    return 0


# ---- numbers ----


cdef bint is_word(const Scanner *scanner, const char *word, size_t len) noexcept nogil:
    return <size_t>(scanner.end - scanner.at) >= len and not memcmp(scanner.at, word, len)


# The digits of a number, after its sign.
cdef int scan_digits(Scanner *scanner, u64 *value) noexcept nogil:
    cdef const char *begin = scanner.at
    cdef int n = etrace_decimal(&scanner.at, value)
    if n == 0:
        return fail(scanner, b"not a number")
    if n < 0 or scanner.at > scanner.end:
        scanner.at = begin
        return fail(scanner, b"a number out of range")
    if scanner.at[0] == c'.' or scanner.at[0] == c'e' or scanner.at[0] == c'E':
        return fail(scanner, b"not a whole number")
    return 0


cdef int scan_number(Scanner *scanner, s64 low, s64 high, s64 *value) noexcept nogil:
    cdef bint is_negative = skip_blanks(scanner) == c'-'
    cdef u64 digits
    if is_word(scanner, b"true", 4) or is_word(scanner, b"false", 5):
        value[0] = scanner.at[0] == c't'
        scanner.at += 4 if value[0] else 5
    else:
        scanner.at += is_negative
        if scan_digits(scanner, &digits) < 0:
            return -1
        if digits > <u64>INT64_MAX:
            return fail(scanner, b"a number out of range")
        value[0] = -<s64>digits if is_negative else <s64>digits
    if not low <= value[0] <= high:
        return fail(scanner, b"a number out of range")
    return 0


cdef int scan_unsigned(Scanner *scanner, u64 *value) noexcept nogil:
    skip_blanks(scanner)
    return scan_digits(scanner, value)


# ---- values that are skipped ----


cdef int skip_string(Scanner *scanner) noexcept nogil:
    cdef bint is_quote
    scanner.at += 1
    while True:
        scanner.at = etrace_find_text_end(scanner.at, scanner.end)
        if scanner.at >= scanner.end:
            return fail(scanner, b"a string without an end")
        is_quote = scanner.at[0] == c'"'
        scanner.at += 1 if is_quote else 2  # with what is escaped
        if is_quote:
            return 0


cdef int skip_scalar(Scanner *scanner) noexcept nogil:
    cdef const char *begin = scanner.at
    while scanner.at < scanner.end and scanner.at[0] > c' ' and scanner.at[0] != c',' \
            and scanner.at[0] != c']' and scanner.at[0] != c'}':
        scanner.at += 1
    return fail(scanner, b"no value") if scanner.at == begin else 0


cdef int skip_value(Scanner *scanner) noexcept nogil:
    cdef int depth = 0
    cdef char found
    while True:
        found = skip_blanks(scanner)
        if found == c'"':
            if skip_string(scanner) < 0:
                return -1
        elif found == c'[' or found == c'{':
            depth += 1
            scanner.at += 1
        elif depth and (found == c']' or found == c'}'):
            depth -= 1
            scanner.at += 1
        elif depth and (found == c',' or found == c':'):
            scanner.at += 1
        elif skip_scalar(scanner) < 0:
            return -1
        if depth == 0:
            return 0
        if depth > MAX_DEPTH:
            return fail(scanner, b"nested too deeply")


cdef int scan_end(Scanner *scanner) noexcept nogil:
    if skip_blanks(scanner) != 0 or scanner.at < scanner.end:
        return fail(scanner, b"more text after the end")
    return 0


# ---- writing ----


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
