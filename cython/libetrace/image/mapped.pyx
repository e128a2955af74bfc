# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The columns of an open database image as C arrays (docs/image.md).

Opening takes the addresses of columns (libetrace.image.columns) and reads none of them, so it costs
the same whatever the size. Row numbers are checked when they are taken out of a column: a damaged
image gives `libetrace.error`, never a crash.
"""
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp

from libetrace.core.errors import Error

from libetrace.image.columns cimport Columns, s2_in, s4_in, s8_in, u1_in, u4_in, u8_in
from libetrace.image.schema cimport (
    ADDED_STRINGS_BYTES, ADDED_STRINGS_START, ARGUMENTS_STRING, CHANGES_KIND, CHANGES_NAME,
    CHANGES_OPEN, CHANGES_TIME_NS, CHILDREN_EXECUTION, CHILDREN_FLAGS, CHILDREN_UPID,
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_EXECUTION, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_IS_CHILD,
    COMPILATIONS_LANGUAGE, COMPILATIONS_OBJECTS_START, COMPILATIONS_TYPE,
    COMPILATION_DEFINITIONS_IS_UNDEF, COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE,
    COMPILATION_FILES_STRING, COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING,
    COMPILATION_OBJECTS_PATH, CPUS_CPU, CPUS_TIME_NS, EXECUTIONS_ARGV_START, EXECUTIONS_BINARY,
    EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_CWD, EXECUTIONS_ELAPSED_NS,
    EXECUTIONS_INDEX, EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_START_NS, EXECUTIONS_STATUS, EXECUTIONS_UPID,
    INHERITED_DESCRIPTOR, INHERITED_MODE, INHERITED_PATH, LINKED_EXECUTION, LINKED_KIND,
    LINKED_PATH, LINKED_TYPE, OPENS_CLOSE_NS, OPENS_EXECUTION, OPENS_MODE, OPENS_OPEN_NS,
    OPENS_ORIGINAL, OPENS_PATH, OPENS_SIZE, OPENS_UNTIL_NS, OPEN_USES_BEGIN_NS,
    OPEN_USES_END_NS, OPEN_USES_MODE, OPEN_USES_OPEN, PATHS_MODE, PATHS_OPENS_START,
    PATHS_STRING, PATH_OPENS_OPEN, PATTERNS_STRING, PATTERN_BITS_BITS, PIPE_READERS_EXECUTION,
    EXECUTION_TARGETS_TARGET, STRINGS_BYTES, STRINGS_START, TARGETS_KIND, TARGETS_NAMES_START,
    TARGETS_OUTER, TARGET_NAMES_STRING, USAGE_USER_NS, WRAPPERS_EXECUTION,
)

HINT = "make it again: cas cache"
cdef const char *EMPTY = b""


cdef class Mapped:
    """The columns of `image` (an `Image` of libetrace.image.file), as C sees them."""

    cdef int bind(self, object image) except -1:
        if not isinstance(image.attributes, dict):
            raise Error(f"{image.path}: damaged: its attributes are not an object", HINT)
        self.image = image
        self.columns = Columns(image, is_checked=False)
        bind_strings(self)
        bind_executions(self)
        bind_opens(self)
        bind_lists(self)
        bind_compilations(self)
        bind_products(self)
        return 0

    # Refuses questions to a database that was not loaded.
    cdef int check(self) except -1:
        if self.image is None:
            raise Error("no database is loaded", "call load(FILE) first")
        return 0

    # ---- checked ways from row to row ----

    cdef object broken(self, str column, s64 row, s64 value):
        return Error(f"{self.image.path}: damaged: {column}[{row}] is {value}", HINT)

    # Bytes of a string; NULL when its number or its place is out of range.
    cdef Text text(self, u64 string) noexcept nogil:
        cdef Text out
        cdef Span span
        cdef const U8 *start = &self.string_start
        cdef const U1 *data = &self.string_bytes
        cdef u64 n_first = self.string_start.n - 1
        out.data = NULL
        out.len = 0
        if string >= n_first:
            string -= n_first
            start = &self.added_start
            data = &self.added_bytes
        if not get_span(start, string, data.n, &span):
            return out
        out.data = EMPTY if data.n == 0 else <const char *>data.at + span.first
        out.len = span.last - span.first
        return out

    cdef str decode(self, u64 string):
        cdef Text text = self.text(string)
        if text.data == NULL:
            raise self.broken("strings.start", string, -1)
        return PyUnicode_DecodeUTF8(text.data, text.len, "surrogateescape")

    cdef str decode_path(self, u64 path):
        if path >= self.n_paths:
            raise self.broken("paths.string", path, -1)
        return self.decode(self.path_string.at[path])

    cdef int span(self, const U8 *start, u64 row, u64 n, Span *out) except -1:
        if not get_span(start, row, n, out):
            raise self.broken("start", row, start.at[row] if row < start.n else -1)
        return 0

    # ---- looking up, log n comparisons each; NONE when there is none ----

    cdef s64 find_string(self, const char *text, Py_ssize_t n_bytes) noexcept nogil:
        cdef u64 low = 0
        cdef u64 high = self.string_start.n - 1
        cdef u64 middle
        cdef Text other
        cdef int order
        while low < high:
            middle = low + (high - low) / 2
            other = self.text(middle)
            if other.data == NULL:
                return NONE
            order = memcmp(other.data, text, min(other.len, n_bytes))
            if order == 0 and other.len == n_bytes:
                return middle
            if order < 0 or (order == 0 and other.len < n_bytes):
                low = middle + 1
            else:
                high = middle
        return NONE

    cdef s64 find_path_of_string(self, u64 string) noexcept nogil:
        cdef u64 low = 0
        cdef u64 high = self.n_paths
        cdef u64 middle
        while low < high:
            middle = low + (high - low) / 2
            if self.path_string.at[middle] < string:
                low = middle + 1
            else:
                high = middle
        if low < self.n_paths and self.path_string.at[low] == string:
            return low
        return NONE

    cdef s64 find_path(self, const char *text, Py_ssize_t n_bytes) noexcept nogil:
        cdef s64 string = self.find_string(text, n_bytes)
        return NONE if string == NONE else self.find_path_of_string(string)

    # First row at or behind (upid, index); n_executions when all are before.
    cdef s64 find_execution(self, s64 upid, s64 index) noexcept nogil:
        cdef u64 low = 0
        cdef u64 high = self.n_executions
        cdef u64 middle
        while low < high:
            middle = low + (high - low) / 2
            if self.upid.at[middle] < upid or (
                self.upid.at[middle] == upid and self.index.at[middle] < index
            ):
                low = middle + 1
            else:
                high = middle
        return low

    # ---- objects, made by the database ----

    cdef object execution(self, s64 row):
        raise NotImplementedError

    cdef object open(self, u64 row):
        raise NotImplementedError


# ---- which column is where ----

cdef void bind_strings(Mapped c) noexcept:
    c.string_start = u8_in(c.columns, STRINGS_START)
    c.string_bytes = u1_in(c.columns, STRINGS_BYTES)
    c.added_start = u8_in(c.columns, ADDED_STRINGS_START)
    c.added_bytes = u1_in(c.columns, ADDED_STRINGS_BYTES)
    c.n_strings = c.string_start.n - 1
    if c.added_start.n:
        c.n_strings += c.added_start.n - 1
    c.path_string = u4_in(c.columns, PATHS_STRING)
    c.path_mode = u1_in(c.columns, PATHS_MODE)
    c.path_opens_start = u8_in(c.columns, PATHS_OPENS_START)
    c.n_paths = c.path_string.n
    c.path_open = u4_in(c.columns, PATH_OPENS_OPEN)


cdef void bind_executions(Mapped c) noexcept:
    c.upid = s8_in(c.columns, EXECUTIONS_UPID)
    c.index = s4_in(c.columns, EXECUTIONS_INDEX)
    c.start_ns = s8_in(c.columns, EXECUTIONS_START_NS)
    c.elapsed_ns = s8_in(c.columns, EXECUTIONS_ELAPSED_NS)
    c.parent = s4_in(c.columns, EXECUTIONS_PARENT)
    c.binary = s4_in(c.columns, EXECUTIONS_BINARY)
    c.cwd = u4_in(c.columns, EXECUTIONS_CWD)
    c.status = s2_in(c.columns, EXECUTIONS_STATUS)
    c.argv_start = u8_in(c.columns, EXECUTIONS_ARGV_START)
    c.opens_start = u8_in(c.columns, EXECUTIONS_OPENS_START)
    c.children_start = u8_in(c.columns, EXECUTIONS_CHILDREN_START)
    c.inherited_start = u8_in(c.columns, EXECUTIONS_INHERITED_START)
    c.readers_start = u8_in(c.columns, EXECUTIONS_READERS_START)
    c.cpus_start = u8_in(c.columns, EXECUTIONS_CPUS_START)
    c.n_executions = c.upid.n


cdef void bind_opens(Mapped c) noexcept:
    c.open_path = u4_in(c.columns, OPENS_PATH)
    c.open_original = u4_in(c.columns, OPENS_ORIGINAL)
    c.open_ns = s8_in(c.columns, OPENS_OPEN_NS)
    c.close_ns = s8_in(c.columns, OPENS_CLOSE_NS)
    c.until_ns = s8_in(c.columns, OPENS_UNTIL_NS)
    c.open_mode = u1_in(c.columns, OPENS_MODE)
    c.open_size = s8_in(c.columns, OPENS_SIZE)
    c.open_execution = u4_in(c.columns, OPENS_EXECUTION)
    c.n_opens = c.open_path.n
    c.change_open = u4_in(c.columns, CHANGES_OPEN)
    c.change_kind = u1_in(c.columns, CHANGES_KIND)
    c.change_ns = s8_in(c.columns, CHANGES_TIME_NS)
    c.change_name = s4_in(c.columns, CHANGES_NAME)
    c.use_open = u4_in(c.columns, OPEN_USES_OPEN)
    c.use_begin = s8_in(c.columns, OPEN_USES_BEGIN_NS)
    c.use_end = s8_in(c.columns, OPEN_USES_END_NS)
    c.use_mode = u1_in(c.columns, OPEN_USES_MODE)


cdef void bind_lists(Mapped c) noexcept:
    c.argument = u4_in(c.columns, ARGUMENTS_STRING)
    c.inherited_descriptor = u1_in(c.columns, INHERITED_DESCRIPTOR)
    c.inherited_path = u4_in(c.columns, INHERITED_PATH)
    c.inherited_mode = u1_in(c.columns, INHERITED_MODE)
    c.child_upid = s8_in(c.columns, CHILDREN_UPID)
    c.child_flags = u8_in(c.columns, CHILDREN_FLAGS)
    c.child_execution = s4_in(c.columns, CHILDREN_EXECUTION)
    c.reader = u4_in(c.columns, PIPE_READERS_EXECUTION)
    c.cpu = u4_in(c.columns, CPUS_CPU)
    c.cpu_ns = s8_in(c.columns, CPUS_TIME_NS)


cdef void bind_compilations(Mapped c) noexcept:
    c.compilation_execution = u4_in(c.columns, COMPILATIONS_EXECUTION)
    c.compilation_language = u4_in(c.columns, COMPILATIONS_LANGUAGE)
    c.compilation_type = u1_in(c.columns, COMPILATIONS_TYPE)
    c.compilation_is_child = u1_in(c.columns, COMPILATIONS_IS_CHILD)
    c.files_start = u8_in(c.columns, COMPILATIONS_FILES_START)
    c.includes_start = u8_in(c.columns, COMPILATIONS_INCLUDES_START)
    c.definitions_start = u8_in(c.columns, COMPILATIONS_DEFINITIONS_START)
    c.headers_start = u8_in(c.columns, COMPILATIONS_HEADERS_START)
    c.objects_start = u8_in(c.columns, COMPILATIONS_OBJECTS_START)
    c.compiled_file = u4_in(c.columns, COMPILATION_FILES_STRING)
    c.include_folder = u4_in(c.columns, COMPILATION_INCLUDES_STRING)
    c.definition_name = u4_in(c.columns, COMPILATION_DEFINITIONS_NAME)
    c.definition_value = u4_in(c.columns, COMPILATION_DEFINITIONS_VALUE)
    c.definition_is_undef = u1_in(c.columns, COMPILATION_DEFINITIONS_IS_UNDEF)
    c.header = u4_in(c.columns, COMPILATION_HEADERS_STRING)
    c.compiled_object = u4_in(c.columns, COMPILATION_OBJECTS_PATH)


cdef void bind_products(Mapped c) noexcept:
    cdef int i
    for i in range(N_USAGE):
        c.usage[i] = s8_in(c.columns, USAGE_USER_NS + i)
    c.linked_execution = u4_in(c.columns, LINKED_EXECUTION)
    c.linked_path = u4_in(c.columns, LINKED_PATH)
    c.linked_type = u1_in(c.columns, LINKED_TYPE)
    c.linked_kind = u1_in(c.columns, LINKED_KIND)
    c.wrapper = s4_in(c.columns, WRAPPERS_EXECUTION)
    c.target_kind = u1_in(c.columns, TARGETS_KIND)
    c.target_outer = s4_in(c.columns, TARGETS_OUTER)
    c.target_names_start = u8_in(c.columns, TARGETS_NAMES_START)
    c.target_name = u4_in(c.columns, TARGET_NAMES_STRING)
    c.target = s4_in(c.columns, EXECUTION_TARGETS_TARGET)
    c.pattern = u4_in(c.columns, PATTERNS_STRING)
    c.pattern_bits = u1_in(c.columns, PATTERN_BITS_BITS)
