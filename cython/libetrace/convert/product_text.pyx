# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Product tables of an image -> keys n, m, d, l and t of an entry."""
from libetrace.image.columns cimport s32_of, s64_of, u8_of, u32_of, u64_of
from libetrace.image.column_builder cimport NONE
from libetrace.convert.value_text cimport (
    FIXED_BYTES, put_number, put_string, put_strings, put_text,
)
from libetrace.core.memory cimport buffer_reserve
from libetrace.core.scan cimport etrace_put_text
from libetrace.image.schema cimport (
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_EXECUTION, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_IS_CHILD,
    COMPILATIONS_OBJECTS_START, COMPILATIONS_TYPE, COMPILATION_DEFINITIONS_IS_UNDEF,
    COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE, COMPILATION_FILES_STRING,
    COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING, COMPILATION_OBJECTS_PATH,
    EXECUTIONS_UPID, LINKED_EXECUTION, LINKED_PATH, LINKED_TYPE, PATHS_STRING, PATTERNS_STRING,
    PATTERN_BITS_BITS, WRAPPERS_EXECUTION,
)
from libetrace.core.types cimport s64, u8, u64

cdef const char *BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


# First row of a product table whose column `execution` is `row`, NONE when there is none.
cdef s64 find_product(Columns columns, int number, u32 row) noexcept nogil:
    cdef const u32 *executions = u32_of(columns, number)
    cdef size_t low = 0
    cdef size_t high = columns.length[number]
    cdef size_t middle
    if executions == NULL:
        return NONE
    while low < high:
        middle = (low + high) / 2
        if executions[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < columns.length[number] and executions[low] == row else NONE


cdef int put_patterns(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef size_t n = (columns.length[PATTERNS_STRING] + 7) / 8
    cdef const u8 *bits = u8_of(columns, PATTERN_BITS_BITS)
    cdef size_t at
    cdef size_t i
    cdef u32 word
    cdef char *to
    if bits == NULL or n == 0:
        return 0
    bits += n * row
    if buffer_reserve(out, FIXED_BYTES + 2 * n) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"n":"')
    for at in range(0, n, 3):
        word = <u32>bits[at] << 16
        for i in range(1, min(<size_t>3, n - at)):
            word |= <u32>bits[at + i] << (16 - 8 * i)
        for i in range(4):
            to[i] = BASE64[word >> (18 - 6 * i) & 63] if at + i <= n else c'='
        to += 4
    out.len = etrace_put_text(to, b'"') - out.data
    return 0


cdef int put_wrapper(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef s64 wrapper
    if columns.data[WRAPPERS_EXECUTION] == NULL:
        return 0
    wrapper = s32_of(columns, WRAPPERS_EXECUTION)[row]
    if wrapper == NONE:
        return 0
    return put_number(out, b',"m":', s64_of(columns, EXECUTIONS_UPID)[wrapper])


cdef int put_definitions(Columns columns, const Texts *texts, Buffer *out, const char *key,
                         s64 at, bint is_undef) noexcept nogil:
    cdef const u64 *start = u64_of(columns, COMPILATIONS_DEFINITIONS_START)
    cdef bint is_first = True
    cdef u64 i
    if put_text(out, key) < 0:
        return -1
    for i in range(start[at], start[at + 1]):
        if (u8_of(columns, COMPILATION_DEFINITIONS_IS_UNDEF)[i] != 0) != is_undef:
            continue
        if put_string(out, b'{"n":' if is_first else b',{"n":', texts,
                      u32_of(columns, COMPILATION_DEFINITIONS_NAME)[i]) < 0 \
                or put_string(out, b',"v":', texts,
                              u32_of(columns, COMPILATION_DEFINITIONS_VALUE)[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
        is_first = False
    return put_text(out, b"]")


cdef int put_list(Columns columns, const Texts *texts, Buffer *out, const char *key, int start,
                  int strings, s64 at) noexcept nogil:
    return put_strings(out, key, texts, u32_of(columns, strings), u64_of(columns, start)[at],
                       u64_of(columns, start)[at + 1])


cdef int put_objects(Columns columns, const Texts *texts, Buffer *out, s64 at) noexcept nogil:
    cdef const u64 *start = u64_of(columns, COMPILATIONS_OBJECTS_START)
    cdef u32 path
    cdef u64 i
    if put_text(out, b',"o":[') < 0:
        return -1
    for i in range(start[at], start[at + 1]):
        path = u32_of(columns, COMPILATION_OBJECTS_PATH)[i]
        if put_string(out, b"," if i > start[at] else b"", texts,
                      u32_of(columns, PATHS_STRING)[path]) < 0:
            return -1
    return put_text(out, b"]")


cdef int put_compilation(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef s64 at = find_product(columns, COMPILATIONS_EXECUTION, row)
    if at == NONE:
        return 0
    if put_list(columns, texts, out, b',"d":{"f":[', COMPILATIONS_FILES_START,
                COMPILATION_FILES_STRING, at) < 0 \
            or put_list(columns, texts, out, b',"i":[', COMPILATIONS_INCLUDES_START,
                        COMPILATION_INCLUDES_STRING, at) < 0 \
            or put_definitions(columns, texts, out, b',"d":[', at, False) < 0 \
            or put_definitions(columns, texts, out, b',"u":[', at, True) < 0 \
            or put_list(columns, texts, out, b',"h":[', COMPILATIONS_HEADERS_START,
                        COMPILATION_HEADERS_STRING, at) < 0 \
            or put_number(out, b',"s":', u8_of(columns, COMPILATIONS_TYPE)[at]) < 0 \
            or put_objects(columns, texts, out, at) < 0:
        return -1
    if put_number(out, b',"p":', u8_of(columns, COMPILATIONS_IS_CHILD)[at]) < 0:
        return -1
    return put_text(out, b"}")


cdef int put_link(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef s64 at = find_product(columns, LINKED_EXECUTION, row)
    cdef u32 path
    if at == NONE:
        return 0
    path = u32_of(columns, LINKED_PATH)[at]
    if put_string(out, b',"l":', texts, u32_of(columns, PATHS_STRING)[path]) < 0:
        return -1
    return put_number(out, b',"t":', u8_of(columns, LINKED_TYPE)[at])


cdef int put_products(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    if put_patterns(columns, out, row) < 0 or put_wrapper(columns, out, row) < 0 \
            or put_compilation(columns, texts, out, row) < 0:
        return -1
    return put_link(columns, texts, out, row)
