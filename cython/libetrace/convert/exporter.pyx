# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of an image -> JSON entries with the keys of seed 001, as etrace_parser writes them.

Order of the keys: p x s e b w v c r i h u ! o, then n m d l t of the products that the image has.
"""
from libc.string cimport memset

from libetrace.core.changes cimport CHANGE_LETTERS, N_CHANGES
from libetrace.image.columns cimport Columns, s16_of, s32_of, s64_of, u8_of, u32_of, u64_of
from libetrace.image.column_builder cimport NONE, add64
from libetrace.core.json_text cimport json_string
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free, buffer_reserve
from libetrace.core.scan cimport etrace_copy, etrace_put_decimal, etrace_put_text
from libetrace.image.schema cimport (
    ADDED_STRINGS_BYTES, ADDED_STRINGS_START, ARGUMENTS_STRING, CHANGES_KIND, CHANGES_NAME,
    CHANGES_OPEN, CHANGES_TIME_NS, CHILDREN_FLAGS, CHILDREN_UPID,
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_EXECUTION, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_IS_CHILD,
    COMPILATIONS_OBJECTS_START, COMPILATIONS_TYPE, COMPILATION_DEFINITIONS_IS_UNDEF,
    COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE, COMPILATION_FILES_STRING,
    COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING, COMPILATION_OBJECTS_PATH, CPUS_CPU,
    CPUS_TIME_NS, EXECUTIONS_ARGV_START, EXECUTIONS_BINARY, EXECUTIONS_CHILDREN_START,
    EXECUTIONS_CPUS_START, EXECUTIONS_CWD, EXECUTIONS_ELAPSED_NS, EXECUTIONS_INDEX,
    EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_START_NS, EXECUTIONS_STATUS, EXECUTIONS_UPID,
    INHERITED_DESCRIPTOR, INHERITED_MODE, INHERITED_PATH, LINKED_EXECUTION, LINKED_PATH,
    LINKED_TYPE, OPENS_CLOSE_NS, OPENS_MODE, OPENS_OPEN_NS, OPENS_ORIGINAL, OPENS_PATH, OPENS_SIZE,
    OPENS_UNTIL_NS, PATHS_STRING, PATTERNS_STRING, PATTERN_BITS_BITS, PIPE_READERS_EXECUTION,
    STRINGS_BYTES, STRINGS_START, WRAPPERS_EXECUTION,
)
from libetrace.core.types cimport s64, u8, u32, u64

cdef enum:
    FIXED_BYTES = 256  # more than the keys and numbers of one piece of text take

cdef const char *BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


# Every string as JSON text, by row.
cdef struct Texts:
    Buffer text
    Buffer start  # u64


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


# A string in quotes, behind a key.
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


# ---- an execution ----


# {"p":upid,"x":index} of a row
cdef char *put_reference(char *to, Columns columns, s64 row) noexcept nogil:
    if row == NONE:
        return etrace_put_text(to, b'{"p":-1,"x":0}')
    to = put_signed(etrace_put_text(to, b'{"p":'), s64_of(columns, EXECUTIONS_UPID)[row])
    to = put_signed(etrace_put_text(to, b',"x":'), s32_of(columns, EXECUTIONS_INDEX)[row])
    return etrace_put_text(to, b"}")


cdef int put_head(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef int binary = s32_of(columns, EXECUTIONS_BINARY)[row]
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'{"p":')
    to = put_signed(to, s64_of(columns, EXECUTIONS_UPID)[row])
    to = put_signed(etrace_put_text(to, b',"x":'), s32_of(columns, EXECUTIONS_INDEX)[row])
    to = put_signed(etrace_put_text(to, b',"s":'), s64_of(columns, EXECUTIONS_START_NS)[row])
    to = put_signed(etrace_put_text(to, b',"e":'), s64_of(columns, EXECUTIONS_ELAPSED_NS)[row])
    out.len = to - out.data
    if binary == NONE:
        if put_text(out, b',"b":""') < 0:
            return -1
    elif put_string(out, b',"b":', texts, u32_of(columns, PATHS_STRING)[binary]) < 0:
        return -1
    return put_string(out, b',"w":', texts, u32_of(columns, EXECUTIONS_CWD)[row])


# The strings whose numbers are numbers[begin..end), in brackets.
cdef int put_strings(Buffer *out, const char *key, const Texts *texts, const u32 *numbers,
                     u64 begin, u64 end) noexcept nogil:
    cdef u64 i
    if put_text(out, key) < 0:
        return -1
    for i in range(begin, end):
        if put_string(out, b"," if i > begin else b"", texts, numbers[i]) < 0:
            return -1
    return put_text(out, b"]")


cdef int put_children(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_CHILDREN_START)[row]
    cdef u64 i
    cdef char *to
    for i in range(begin, u64_of(columns, EXECUTIONS_CHILDREN_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"p":' if i > begin else b'{"p":')
        to = put_signed(to, s64_of(columns, CHILDREN_UPID)[i])
        to = etrace_put_text(to, b',"f":')
        to = etrace_put_text(etrace_put_decimal(to, u64_of(columns, CHILDREN_FLAGS)[i]), b"}")
        out.len = to - out.data
    return 0


cdef int put_links(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_READERS_START)[row]
    cdef u64 i
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b'],"r":')
    to = put_reference(to, columns, s32_of(columns, EXECUTIONS_PARENT)[row])
    out.len = etrace_put_text(to, b',"i":[') - out.data
    for i in range(begin, u64_of(columns, EXECUTIONS_READERS_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b"," if i > begin else b"")
        to = put_reference(to, columns, u32_of(columns, PIPE_READERS_EXECUTION)[i])
        out.len = to - out.data
    return 0


# Files that the execution began with, when this database tells of them.
cdef int put_inherited(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_INHERITED_START)[row]
    cdef u32 path
    cdef u64 i
    if put_text(out, b'],"h":[') < 0:
        return -1
    for i in range(begin, u64_of(columns, EXECUTIONS_INHERITED_START)[row + 1]):
        path = u32_of(columns, PATHS_STRING)[u32_of(columns, INHERITED_PATH)[i]]
        if put_number(out, b',{"d":' if i > begin else b'{"d":',
                      u8_of(columns, INHERITED_DESCRIPTOR)[i]) < 0 \
                or put_string(out, b',"p":', texts, path) < 0 \
                or put_number(out, b',"m":', u8_of(columns, INHERITED_MODE)[i]) < 0 \
                or put_text(out, b"}") < 0:
            return -1
    return 0


cdef int put_cpus(Columns columns, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_CPUS_START)[row]
    cdef u64 i
    cdef char *to
    if put_text(out, b'],"u":[') < 0:
        return -1
    for i in range(begin, u64_of(columns, EXECUTIONS_CPUS_START)[row + 1]):
        if buffer_reserve(out, FIXED_BYTES) < 0:
            return -1
        to = etrace_put_text(out.data + out.len, b',{"c":' if i > begin else b'{"c":')
        to = etrace_put_decimal(to, u32_of(columns, CPUS_CPU)[i])
        to = put_signed(etrace_put_text(to, b',"t":'), s64_of(columns, CPUS_TIME_NS)[i])
        out.len = etrace_put_text(to, b"}") - out.data
    return 0


# The first row of `changes` that is of this open or a later one.
cdef u64 find_changes(Columns columns, u64 opened) noexcept nogil:
    cdef const u32 *opens = u32_of(columns, CHANGES_OPEN)
    cdef u64 low = 0
    cdef u64 high = columns.length[CHANGES_OPEN]
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if opens[middle] < opened:
            low = middle + 1
        else:
            high = middle
    return low


cdef int put_change(Columns columns, const Texts *texts, Buffer *out, u64 i,
                    bint is_first) noexcept nogil:
    cdef u8 kind = u8_of(columns, CHANGES_KIND)[i]
    cdef s64 name = s32_of(columns, CHANGES_NAME)[i]
    cdef char[2] letter
    letter[0] = CHANGE_LETTERS[kind - 1] if 1 <= kind <= N_CHANGES else c'?'
    letter[1] = 0
    if put_text(out, b',"t":[{"k":"' if is_first else b',{"k":"') < 0 \
            or put_text(out, letter) < 0 \
            or put_number(out, b'","t":', s64_of(columns, CHANGES_TIME_NS)[i]) < 0 \
            or (name != NONE and put_string(out, b',"n":', texts, <u32>name) < 0):
        return -1
    return put_text(out, b"}")


# "t" of an open, whose changes begin at change[0] if it has some.
cdef int put_changes(Columns columns, const Texts *texts, Buffer *out, u64 opened,
                     u64 *change) noexcept nogil:
    cdef const u32 *opens = u32_of(columns, CHANGES_OPEN)
    cdef u64 first = change[0]
    while change[0] < columns.length[CHANGES_OPEN] and opens[change[0]] == opened:
        if put_change(columns, texts, out, change[0], change[0] == first) < 0:
            return -1
        change[0] += 1
    return put_text(out, b"]") if change[0] > first else 0


cdef int put_open(Columns columns, const Texts *texts, Buffer *out, u64 i, u64 *change,
                  bint is_first) noexcept nogil:
    cdef u32 path = u32_of(columns, PATHS_STRING)[u32_of(columns, OPENS_PATH)[i]]
    cdef u32 original = u32_of(columns, OPENS_ORIGINAL)[i]
    cdef s64 begin = s64_of(columns, OPENS_OPEN_NS)[i]
    cdef s64 end = s64_of(columns, OPENS_CLOSE_NS)[i]
    cdef s64 until = s64_of(columns, OPENS_UNTIL_NS)[i]
    cdef char *to
    if put_string(out, b'{"p":' if is_first else b',{"p":', texts, path) < 0:
        return -1
    if original != path and put_string(out, b',"o":', texts, original) < 0:
        return -1
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"b":')
    to = put_signed(to, begin)
    to = put_signed(etrace_put_text(to, b',"e":'), end)
    if until > max(begin, end):
        to = put_signed(etrace_put_text(to, b',"l":'), until)
    out.len = to - out.data
    if put_changes(columns, texts, out, i, change) < 0 or buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"m":')
    to = etrace_put_decimal(to, u8_of(columns, OPENS_MODE)[i])
    to = put_signed(etrace_put_text(to, b',"s":'), s64_of(columns, OPENS_SIZE)[i])
    out.len = etrace_put_text(to, b"}") - out.data
    return 0


cdef int put_opens(Columns columns, const Texts *texts, Buffer *out, u32 row) noexcept nogil:
    cdef u64 begin = u64_of(columns, EXECUTIONS_OPENS_START)[row]
    cdef u64 change = find_changes(columns, begin)
    cdef u64 i
    if put_text(out, b'],') < 0:
        return -1
    if s16_of(columns, EXECUTIONS_STATUS)[row] != NONE:
        if put_number(out, b'"!":', s16_of(columns, EXECUTIONS_STATUS)[row]) < 0 \
                or put_text(out, b",") < 0:
            return -1
    if put_text(out, b'"o":[') < 0:
        return -1
    for i in range(begin, u64_of(columns, EXECUTIONS_OPENS_START)[row + 1]):
        if put_open(columns, texts, out, i, &change, i == begin) < 0:
            return -1
    return put_text(out, b"]")


# ---- products ----


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


# Whether the database tells of inherited files and last uses: a foreign one does not.
cdef bint tells_last(Columns columns) noexcept nogil:
    cdef const s64 *until = s64_of(columns, OPENS_UNTIL_NS)
    cdef size_t i
    for i in range(columns.length[OPENS_UNTIL_NS]):
        if until[i] != NONE:
            return True
    return columns.length[INHERITED_PATH] > 0


cdef int put_entry(Columns columns, const Texts *texts, Buffer *out, u32 row,
                   bint is_telling) noexcept nogil:
    cdef const u64 *argv = u64_of(columns, EXECUTIONS_ARGV_START)
    if put_head(columns, texts, out, row) < 0 \
            or put_strings(out, b',"v":[', texts, u32_of(columns, ARGUMENTS_STRING), argv[row],
                           argv[row + 1]) < 0 \
            or put_text(out, b',"c":[') < 0 or put_children(columns, out, row) < 0 \
            or put_links(columns, out, row) < 0 \
            or (is_telling and put_inherited(columns, texts, out, row) < 0) \
            or put_cpus(columns, out, row) < 0 \
            or put_opens(columns, texts, out, row) < 0:
        return -1
    if put_patterns(columns, out, row) < 0 or put_wrapper(columns, out, row) < 0 \
            or put_compilation(columns, texts, out, row) < 0 \
            or put_link(columns, texts, out, row) < 0:
        return -1
    return put_text(out, b"}")


cdef class Exporter:
    """Text of the entries of one image."""

    cdef Columns columns
    cdef Texts texts
    cdef bint is_telling

    def __cinit__(self, Columns columns not None):
        cdef int status
        self.columns = columns
        self.is_telling = tells_last(columns)
        with nogil:
            status = make_texts(columns, &self.texts)
        if status < 0:
            raise MemoryError

    def __dealloc__(self):
        buffer_free(&self.texts.text)
        buffer_free(&self.texts.start)

    @property
    def n_entries(self):
        """How many executions there are."""
        return self.columns.length[EXECUTIONS_UPID]

    def entries(self, size_t begin, size_t end):
        """Return the entries [begin, end), each ended by a newline, by a comma and one but the last."""
        cdef Buffer out
        cdef size_t n = self.columns.length[EXECUTIONS_UPID]
        cdef size_t row
        cdef int status = 0
        if not begin <= end <= n:
            raise IndexError(f"entries {begin} to {end} of {n}")
        memset(&out, 0, sizeof(out))
        try:
            with nogil:
                for row in range(begin, end):
                    status = put_entry(self.columns, &self.texts, &out, <u32>row, self.is_telling)
                    if status == 0:
                        status = put_text(&out, b",\n" if row + 1 < n else b"\n")
                    if status < 0:
                        break
            if status < 0:
                raise MemoryError
            return out.data[:out.len]
        finally:
            buffer_free(&out)
