# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Keys n, m, d, l, t of an entry -> products of a draft.

JSON says less than the tables hold: which language an other one than C or C++ is, what kind of
module a linker made, and the text of the patterns. The kind is guessed by the module's name.
"""
from libc.string cimport memchr, memcmp, memcpy, memset

from libetrace.image.column_builder cimport NONE, add8, add32, add64, draft_name
from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve
from libetrace.core.interned cimport Name
from libetrace.convert.json_values cimport (
    column, next_letter, no_memory, read_list, read_name, read_object, read_path, read_paths, read_strings,
)
from libetrace.core.json_text cimport fail, scan_number, scan_open, scan_string
from libetrace.image.schema cimport (
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_EXECUTION, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_IS_CHILD,
    COMPILATIONS_LANGUAGE, COMPILATIONS_OBJECTS_START, COMPILATIONS_TYPE,
    COMPILATION_DEFINITIONS_IS_UNDEF, COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE,
    COMPILATION_FILES_STRING, COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING,
    COMPILATION_OBJECTS_PATH, EXECUTIONS_UPID, LINKED_EXECUTION, LINKED_KIND, LINKED_PATH,
    LINKED_TYPE, PATTERN_BITS_BITS,
)
from libetrace.core.types cimport INT64_MAX, s32, u8, u32

cdef enum:
    MAX_LANGUAGE = 3  # in Samsung CAS 3 is assembler with preprocessor

# kinds of modules
cdef enum:
    ARCHIVE, EXECUTABLE, SHARED_OBJECT, PARTIAL_LINK


cdef void products_begin(Products *products) noexcept nogil:
    memset(products, 0, sizeof(products[0]))
    products.wrapper = products.link = NONE
    products.link_type = 1


cdef void products_end(Products *products) noexcept nogil:
    buffer_free(&products.bits)


# ---- patterns ----


cdef int base64_value(char digit) noexcept nogil:
    if c'A' <= digit <= c'Z':
        return digit - c'A'
    if c'a' <= digit <= c'z':
        return digit - c'a' + 26
    if c'0' <= digit <= c'9':
        return digit - c'0' + 52
    return 62 if digit == c'+' else 63 if digit == c'/' else -1


# Four digits; the last two may be padding. Returns how many bytes they are, -1 when none.
cdef int decode_four(const char *digits, u8 *out) noexcept nogil:
    cdef int n = 1 if digits[2] == c'=' else 2 if digits[3] == c'=' else 3
    cdef u32 bits = 0
    cdef int i
    if n == 1 and digits[3] != c'=':
        return -1
    for i in range(n + 1):
        if base64_value(digits[i]) < 0:
            return -1
        bits |= <u32>base64_value(digits[i]) << (18 - 6 * i)
    for i in range(n):
        out[i] = <u8>(bits >> (16 - 8 * i))
    return n


cdef int read_patterns(Reading *reading, Products *products) noexcept nogil:
    cdef const char *digits
    cdef size_t len
    cdef size_t i
    cdef u8[3] out
    cdef int n = 3
    if scan_string(&reading.scanner, &digits, &len) < 0:
        return -1
    products.has_patterns = True
    products.bits.len = 0
    for i in range(0, len, 4):
        if n != 3 or len % 4:
            return fail(&reading.scanner, b"not base64")
        n = decode_four(digits + i, out)
        if n < 0:
            return fail(&reading.scanner, b"not base64")
        if buffer_add(&products.bits, out, n) < 0:
            return no_memory(reading)
    return 0


# Bits of an execution; all of them have as many, those without a key have zeros.
cdef int add_patterns(Reading *reading, const Products *products, u32 row) noexcept nogil:
    cdef Buffer *bits = column(reading, PATTERN_BITS_BITS)
    cdef size_t n = products.bits.len
    if products.has_patterns and reading.draft.n_pattern_bytes == NONE:
        if buffer_reserve(bits, n * row) < 0:
            return no_memory(reading)
        memset(bits.data + bits.len, 0, n * row)
        bits.len += n * row
        reading.draft.n_pattern_bytes = n
    if reading.draft.n_pattern_bytes == NONE:
        return 0
    if products.has_patterns and <size_t>reading.draft.n_pattern_bytes != n:
        return fail(&reading.scanner, b"as many patterns (n) as other executions have, or none")
    n = reading.draft.n_pattern_bytes
    if buffer_reserve(bits, n) < 0:
        return no_memory(reading)
    if products.has_patterns:
        memcpy(bits.data + bits.len, products.bits.data, n)
    else:
        memset(bits.data + bits.len, 0, n)
    bits.len += n
    return 0


# ---- compilations ----


cdef int read_definition_of(Reading *reading, bint is_undef) noexcept nogil:
    cdef bint is_first = True
    cdef s64[2] names
    cdef int letter
    names[0] = NONE
    names[1] = draft_name(reading.draft, b"", 0)
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        letter = next_letter(reading, b"nv", &is_first)
        if letter <= 0:
            break
        names[letter == c'v'] = read_name(reading)
        if names[letter == c'v'] < 0:
            return -1
    if letter < 0:
        return -1
    if names[0] < 0:
        return fail(&reading.scanner, b"a definition without n")
    if names[1] < 0 or add32(column(reading, COMPILATION_DEFINITIONS_NAME), <s32>names[0]) < 0 \
            or add32(column(reading, COMPILATION_DEFINITIONS_VALUE), <s32>names[1]) < 0 \
            or add8(column(reading, COMPILATION_DEFINITIONS_IS_UNDEF), is_undef) < 0:
        return no_memory(reading)
    return 0


cdef int read_definition(Reading *reading) noexcept nogil:
    return read_definition_of(reading, False)


cdef int read_undefinition(Reading *reading) noexcept nogil:
    return read_definition_of(reading, True)


cdef int read_compilation_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Products *products = <Products *>into
    cdef s64 is_child
    if letter == c'f':
        return read_strings(reading, column(reading, COMPILATION_FILES_STRING))
    if letter == c'i':
        return read_strings(reading, column(reading, COMPILATION_INCLUDES_STRING))
    if letter == c'h':
        return read_strings(reading, column(reading, COMPILATION_HEADERS_STRING))
    if letter == c'o':
        return read_paths(reading, column(reading, COMPILATION_OBJECTS_PATH))
    if letter == c'd':
        return read_list(reading, read_definition)
    if letter == c'u':
        return read_list(reading, read_undefinition)
    if letter == c's':
        return scan_number(&reading.scanner, 0, MAX_LANGUAGE, &products.language)
    if scan_number(&reading.scanner, 0, 1, &is_child) < 0:
        return -1
    products.is_child = is_child != 0
    return 0


cdef int read_compilation(Reading *reading, Products *products) noexcept nogil:
    products.has_compilation = True
    return read_object(reading, b"fiduhsop", read_compilation_value, products)


cdef int add_compilation(Reading *reading, const Products *products, u32 row) noexcept nogil:
    cdef const char *language = b"c" if products.language == 1 else b"c++"
    cdef bint is_known = 1 <= products.language <= 2
    cdef s64 name = draft_name(reading.draft, language,
                               <size_t>products.language * 2 - 1 if is_known else 0)
    if name < 0 or add32(column(reading, COMPILATIONS_EXECUTION), <s32>row) < 0 \
            or add32(column(reading, COMPILATIONS_LANGUAGE), <s32>name) < 0 \
            or add8(column(reading, COMPILATIONS_TYPE), <u8>products.language) < 0 \
            or add8(column(reading, COMPILATIONS_IS_CHILD), products.is_child) < 0 \
            or add64(column(reading, COMPILATIONS_FILES_START),
                     column(reading, COMPILATION_FILES_STRING).len / sizeof(u32)) < 0 \
            or add64(column(reading, COMPILATIONS_INCLUDES_START),
                     column(reading, COMPILATION_INCLUDES_STRING).len / sizeof(u32)) < 0 \
            or add64(column(reading, COMPILATIONS_DEFINITIONS_START),
                     column(reading, COMPILATION_DEFINITIONS_NAME).len / sizeof(u32)) < 0 \
            or add64(column(reading, COMPILATIONS_HEADERS_START),
                     column(reading, COMPILATION_HEADERS_STRING).len / sizeof(u32)) < 0 \
            or add64(column(reading, COMPILATIONS_OBJECTS_START),
                     column(reading, COMPILATION_OBJECTS_PATH).len / sizeof(u32)) < 0:
        return no_memory(reading)
    reading.draft.has_compilations = True
    return 0


# ---- modules ----


# X.so and X.so.N are shared objects, X.o is a partial link.
cdef u8 kind_of_module(const Name *path) noexcept nogil:
    cdef const char *at = path.bytes
    cdef const char *end = path.bytes + path.len
    if path.len >= 2 and not memcmp(end - 2, b".o", 2):
        return PARTIAL_LINK
    while True:
        at = <const char *>memchr(at, c'.', end - at)
        if at == NULL:
            return EXECUTABLE
        if not memcmp(at, b".so", 3) and (at[3] == 0 or at[3] == c'.'):
            return SHARED_OBJECT
        at += 1


cdef int add_link(Reading *reading, const Products *products, u32 row) noexcept nogil:
    cdef u8 kind = ARCHIVE
    if products.link_type:
        kind = kind_of_module(&reading.draft.names.all[products.link])
    if add32(column(reading, LINKED_EXECUTION), <s32>row) < 0 \
            or add32(column(reading, LINKED_PATH), <s32>products.link) < 0 \
            or add8(column(reading, LINKED_TYPE), <u8>products.link_type) < 0 \
            or add8(column(reading, LINKED_KIND), kind) < 0:
        return no_memory(reading)
    reading.draft.has_links = True
    return 0


# ---- all of them ----


cdef int read_product(Reading *reading, int letter, Products *products) noexcept nogil:
    if letter == c'n':
        return read_patterns(reading, products)
    if letter == c'm':
        return scan_number(&reading.scanner, NONE, INT64_MAX, &products.wrapper)
    if letter == c'd':
        return read_compilation(reading, products)
    if letter == c't':
        return scan_number(&reading.scanner, 0, 1, &products.link_type)
    products.link = read_path(reading)  # l
    return 0 if products.link >= 0 else -1


cdef int add_products(Reading *reading, const Products *products) noexcept nogil:
    cdef u32 row = <u32>(column(reading, EXECUTIONS_UPID).len / sizeof(s64)) - 1
    if add64(&reading.draft.wrappers, products.wrapper) < 0:
        return no_memory(reading)
    if products.wrapper != NONE:
        reading.draft.has_wrappers = True
    if products.has_compilation and add_compilation(reading, products, row) < 0:
        return -1
    if products.link >= 0 and add_link(reading, products, row) < 0:
        return -1
    return add_patterns(reading, products, row)
