# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Tables of an image -> parts of its JSON: products of an entry, environment, mounts."""
from libc.stdlib cimport free, malloc, qsort

from libetrace.core.json_text cimport json_string
from libetrace.core.memory cimport buffer_free
from libetrace.core.types cimport u8
from libetrace.image.column_builder cimport NONE, add64
from libetrace.image.columns cimport U4, U8, first_of


cdef int add_texts(Texts *texts, const u64 *start, size_t n, const char *strings) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if json_string(&texts.text, strings + start[i], start[i + 1] - start[i]) < 0 \
                or add64(&texts.start, texts.text.len) < 0:
            return -1
    return 0


cdef int make_texts(Columns columns, Texts *texts) noexcept nogil:
    if add64(&texts.start, 0) < 0 or add_texts(
            texts, columns.strings_start.at, columns.strings_start.n - 1,
            <const char *>columns.strings_bytes.at) < 0:
        return -1
    if columns.added_strings_start.at == NULL:
        return 0
    return add_texts(texts, columns.added_strings_start.at,
                     columns.added_strings_start.n - 1, <const char *>columns.added_strings_bytes.at)


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
    to = put_signed(etrace_put_text(to, b'{"p":'), columns.executions_upid.at[row])
    to = put_signed(etrace_put_text(to, b',"x":'), columns.executions_index.at[row])
    return etrace_put_text(to, b"}")


# ---- products ----

cdef const char *BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


# First row of a product whose column `execution` is `row`, NONE when there is none.
cdef s64 find_product(U4 executions, u32 row) noexcept nogil:
    cdef u64 found = first_of(executions, row)
    return found if found < executions.n and executions.at[found] == row else NONE


cdef int put_patterns(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef size_t n = (columns.patterns_string.n + 7) / 8
    cdef const u8 *bits = columns.pattern_bits_bits.at
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
    if columns.wrappers_execution.at == NULL:
        return 0
    wrapper = columns.wrappers_execution.at[row]
    if wrapper == NONE:
        return 0
    return put_number(out, b',"m":', columns.executions_upid.at[wrapper])


cdef int put_definitions(Columns columns, const Texts *texts, Buffer *out, const char *key,
                         s64 at, bint is_undef) noexcept nogil:
    cdef const u64 *start = columns.compilations_definitions_start.at
    cdef bint is_first = True
    cdef u64 i
    if put_text(out, key) < 0:
        return -1
    for i in range(start[at], start[at + 1]):
        if (columns.compilation_definitions_is_undef.at[i] != 0) != is_undef:
            continue
        if put_string(out, b'{"n":' if is_first else b',{"n":', texts,
                      columns.compilation_definitions_name.at[i]) < 0 \
                or put_string(out, b',"v":', texts,
                              columns.compilation_definitions_value.at[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
        is_first = False
    return put_text(out, b"]")


cdef int put_list(const Texts *texts, Buffer *out, const char *key, U8 start, U4 strings,
                  s64 at) noexcept nogil:
    return put_strings(out, key, texts, strings.at, start.at[at], start.at[at + 1])


cdef int put_objects(Columns columns, const Texts *texts, Buffer *out, s64 at) noexcept nogil:
    cdef const u64 *start = columns.compilations_objects_start.at
    cdef u32 path
    cdef u64 i
    if put_text(out, b',"o":[') < 0:
        return -1
    for i in range(start[at], start[at + 1]):
        path = columns.compilation_objects_path.at[i]
        if put_string(out, b"," if i > start[at] else b"", texts,
                      columns.paths_string.at[path]) < 0:
            return -1
    return put_text(out, b"]")


cdef int put_compilation(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef s64 at = find_product(columns.compilations_execution, row)
    if at == NONE:
        return 0
    if put_list(texts, out, b',"d":{"f":[', columns.compilations_files_start,
                columns.compilation_files_string, at) < 0 \
            or put_list(texts, out, b',"i":[', columns.compilations_includes_start,
                columns.compilation_includes_string, at) < 0 \
            or put_definitions(columns, texts, out, b',"d":[', at, False) < 0 \
            or put_definitions(columns, texts, out, b',"u":[', at, True) < 0 \
            or put_list(texts, out, b',"h":[', columns.compilations_headers_start,
                columns.compilation_headers_string, at) < 0 \
            or put_number(out, b',"s":', columns.compilations_type.at[at]) < 0 \
            or put_objects(columns, texts, out, at) < 0:
        return -1
    if put_number(out, b',"p":', columns.compilations_is_child.at[at]) < 0:
        return -1
    return put_text(out, b"}")


cdef int put_link(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef s64 at = find_product(columns.linked_execution, row)
    cdef u32 path
    if at == NONE:
        return 0
    path = columns.linked_path.at[at]
    if put_string(out, b',"l":', texts, columns.paths_string.at[path]) < 0:
        return -1
    return put_number(out, b',"t":', columns.linked_type.at[at])


cdef int put_products(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    if put_patterns(columns, out, row) < 0 or put_wrapper(columns, out, row) < 0 \
            or put_compilation(columns, texts, out, row) < 0:
        return -1
    return put_link(columns, texts, out, row)


# ---- environment ----


# A process that was started with a variable.
cdef struct Holder:
    u32 string
    s64 upid


cdef int compare_holders(const void *a, const void *b) noexcept nogil:
    cdef const Holder *x = <const Holder *>a
    cdef const Holder *y = <const Holder *>b
    if x.string != y.string:
        return -1 if x.string < y.string else 1
    return (x.upid > y.upid) - (x.upid < y.upid)


# The rows of `environment` by variable; NULL when there is no memory.
cdef Holder *sort_holders(Columns columns, size_t n) noexcept nogil:
    cdef Holder *holders = <Holder *>malloc((n + 1) * sizeof(Holder))
    cdef size_t i
    if holders == NULL:
        return NULL
    for i in range(n):
        holders[i].string = columns.environment_string.at[i]
        holders[i].upid = columns.environment_upid.at[i]
    if n:
        qsort(holders, n, sizeof(Holder), compare_holders)
    return holders


cdef int put_holders(const Holder *holders, size_t n, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if i and holders[i].string == holders[i - 1].string:
            if put_text(out, b",") < 0:
                return -1
        elif put_string(out, b"],\n" if i else b"\n", texts, holders[i].string) < 0 \
                or put_text(out, b":[") < 0:
            return -1
        if put_number(out, b"", holders[i].upid) < 0:
            return -1
    return put_text(out, b"]\n") if n else 0


cdef int put_environment(Columns columns, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t n = columns.environment_upid.n
    cdef Holder *holders = sort_holders(columns, n)
    cdef int status = -1
    if holders != NULL and put_text(out, b"{") == 0:
        status = put_holders(holders, n, texts, out)
    free(holders)
    return status if status < 0 else put_text(out, b"}\n")


# ---- mounts ----


# A string that may be missing.
cdef int put_optional(Buffer *out, const char *key, const Texts *texts, s64 string) noexcept nogil:
    return 0 if string == NONE else put_string(out, key, texts, <u32>string)


cdef int put_mount(Columns columns, const Texts *texts, Buffer *out, size_t row) noexcept nogil:
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = put_reference(out.data + out.len, columns, columns.mounts_execution.at[row])
    out.len = to - 1 - out.data  # the object goes on
    if put_number(out, b',"t":', columns.mounts_time_ns.at[row]) < 0 \
            or put_text(out, b',"k":"umount"' if columns.mounts_kind.at[row]
                        else b',"k":"mount"') < 0 \
            or put_optional(out, b',"source":', texts, columns.mounts_source.at[row]) < 0 \
            or put_optional(out, b',"target":', texts, columns.mounts_target.at[row]) < 0 \
            or put_optional(out, b',"type":', texts, columns.mounts_type.at[row]) < 0 \
            or buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"flags":')
    to = etrace_put_decimal(to, columns.mounts_flags.at[row])
    to = etrace_put_text(to, b',"ok":true}' if columns.mounts_ok.at[row] else b',"ok":false}')
    out.len = to - out.data
    return 0


cdef int put_mounts(Columns columns, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t n = columns.mounts_kind.n
    cdef size_t row
    if put_text(out, b"[") < 0:
        return -1
    for row in range(n):
        if put_text(out, b",\n" if row else b"\n") < 0 or put_mount(columns, texts, out, row) < 0:
            return -1
    return put_text(out, b"\n]\n" if n else b"]\n")
