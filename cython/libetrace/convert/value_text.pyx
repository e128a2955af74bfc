# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Text of values that several parts of a JSON database hold."""
from libetrace.image.columns cimport s32_of, s64_of, u64_of
from libetrace.image.column_builder cimport NONE, add64
from libetrace.core.json_text cimport json_string
from libetrace.core.memory cimport buffer_free
from libetrace.image.schema cimport (
    ADDED_STRINGS_BYTES, ADDED_STRINGS_START, EXECUTIONS_INDEX, EXECUTIONS_UPID, STRINGS_BYTES,
    STRINGS_START,
)


cdef int add_texts(Texts *texts, const u64 *start, size_t n, const char *strings) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if json_string(&texts.text, strings + start[i], start[i + 1] - start[i]) < 0 \
                or add64(&texts.start, texts.text.len) < 0:
            return -1
    return 0


cdef int make_texts(Columns columns, Texts *texts) noexcept nogil:
    if add64(&texts.start, 0) < 0 or add_texts(
            texts, u64_of(columns, STRINGS_START), columns.length[STRINGS_START] - 1,
            columns.data[STRINGS_BYTES]) < 0:
        return -1
    if columns.data[ADDED_STRINGS_START] == NULL:
        return 0
    return add_texts(texts, u64_of(columns, ADDED_STRINGS_START),
                     columns.length[ADDED_STRINGS_START] - 1, columns.data[ADDED_STRINGS_BYTES])


cdef void texts_free(Texts *texts) noexcept nogil:
    buffer_free(&texts.text)
    buffer_free(&texts.start)


cdef int put_strings(Buffer *out, const char *key, const Texts *texts, const u32 *numbers,
                     u64 begin, u64 end) noexcept nogil:
    cdef u64 i
    if put_text(out, key) < 0:
        return -1
    for i in range(begin, end):
        if put_string(out, b"," if i > begin else b"", texts, numbers[i]) < 0:
            return -1
    return put_text(out, b"]")


cdef char *put_reference(char *to, Columns columns, s64 row) noexcept nogil:
    if row == NONE:
        return etrace_put_text(to, b'{"p":-1,"x":0}')
    to = put_signed(etrace_put_text(to, b'{"p":'), s64_of(columns, EXECUTIONS_UPID)[row])
    to = put_signed(etrace_put_text(to, b',"x":'), s32_of(columns, EXECUTIONS_INDEX)[row])
    return etrace_put_text(to, b"}")
