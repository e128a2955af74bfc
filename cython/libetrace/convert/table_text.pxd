# SPDX-License-Identifier: Apache-2.0
# Values and tables of a database as JSON text.
from libetrace.image.columns cimport Columns
from libetrace.core.memory cimport Buffer, buffer_reserve
from libetrace.core.scan cimport etrace_copy, etrace_put_decimal, etrace_put_text
from libetrace.core.types cimport s64, u32, u64

cdef enum:
    FIXED_BYTES = 256  # more than the keys and numbers of one piece of text take


# Every string as JSON text, by row.
cdef struct Texts:
    Buffer text
    Buffer start  # u64


cdef int make_texts(Columns columns, Texts *texts) noexcept nogil
cdef void texts_free(Texts *texts) noexcept nogil
# The strings whose numbers are numbers[begin..end), after a key and up to the bracket.
cdef int put_strings(Buffer *out, const char *key, const Texts *texts, const u32 *numbers,
                     u64 begin, u64 end) noexcept nogil
# {"p":upid,"x":index} of a row; room is there.
cdef char *put_reference(char *to, Columns columns, s64 row) noexcept nogil

cdef inline char *put_signed(char *to, s64 value) noexcept nogil:
    if value < 0:
        to[0] = c'-'
        return etrace_put_decimal(to + 1, 0 - <u64>value)
    return etrace_put_decimal(to, <u64>value)


cdef inline int put_text(Buffer *out, const char *text) noexcept nogil:
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    out.len = etrace_put_text(out.data + out.len, text) - out.data
    return 0


# A string in quotes, after a key.
cdef inline int put_string(Buffer *out, const char *key, const Texts *texts,
                           u32 row) noexcept nogil:
    cdef const u64 *start = <const u64 *>texts.start.data
    cdef size_t len = start[row + 1] - start[row]
    cdef char *to
    if buffer_reserve(out, len + FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, key)
    out.len = etrace_copy(to, texts.text.data + start[row], len) - out.data
    return 0


cdef inline int put_number(Buffer *out, const char *key, s64 value) noexcept nogil:
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    out.len = put_signed(etrace_put_text(out.data + out.len, key), value) - out.data
    return 0

# The keys n, m, d, l and t of an execution, those that the image has.
cdef int put_products(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil
# {"NAME=value":[upid,..],..}, a variable a line
cdef int put_environment(Columns columns, const Texts *texts, Buffer *out) noexcept nogil
# [{"p":upid,"x":index,"t":time,"k":"mount",..},..], one a line
cdef int put_mounts(Columns columns, const Texts *texts, Buffer *out) noexcept nogil
