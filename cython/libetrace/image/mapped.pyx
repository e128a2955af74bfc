# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The columns of an open database image as C arrays (docs/image.md).

Opening takes the addresses of columns and reads none of them, so it costs the same whatever the
size. Row numbers are checked when they are taken out of a column: a damaged image gives
`libetrace.error`, never a crash.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp

from libetrace.core.errors import Error

HINT = "make it again: cas cache"
cdef const char *EMPTY = b""


# Takes columns of one table out of an image.
cdef class Binder:
    cdef object image
    cdef list views
    cdef str table
    cdef bint is_product

    cdef void take(self, str table, bint is_product):
        self.table = table
        self.is_product = is_product

    # Address and elements of a column; nothing when the image lacks a product.
    cdef const void *find(self, str name, str dtype, u64 *n) except? NULL:
        cdef Py_buffer buffer
        cdef const void *data
        tables = self.image.tables
        n[0] = 0
        if self.table not in tables:
            if self.is_product:
                return NULL
            raise Error(f"{self.image.path}: no table {self.table}", HINT)
        table = tables[self.table]
        if name not in table.columns or table.infos[name].dtype != dtype:
            raise Error(f"{self.image.path}: no column {self.table}.{name} of {dtype}", HINT)
        view = table.columns[name]
        self.views.append(view)
        n[0] = len(view)
        if name.endswith("start") and not n[0]:
            raise Error(f"{self.image.path}: damaged: {self.table}.{name} is empty", HINT)
        PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE)
        data = buffer.buf
        PyBuffer_Release(&buffer)  # `views` keeps it where it is
        return data

    cdef U1 u1(self, str name) except *:
        cdef U1 out
        out.at = <const u8 *>self.find(name, "|u1", &out.n)
        return out

    cdef S2 s2(self, str name) except *:
        cdef S2 out
        out.at = <const s16 *>self.find(name, "<i2", &out.n)
        return out

    cdef U4 u4(self, str name) except *:
        cdef U4 out
        out.at = <const u32 *>self.find(name, "<u4", &out.n)
        return out

    cdef S4 s4(self, str name) except *:
        cdef S4 out
        out.at = <const s32 *>self.find(name, "<i4", &out.n)
        return out

    cdef U8 u8(self, str name) except *:
        cdef U8 out
        out.at = <const u64 *>self.find(name, "<u8", &out.n)
        return out

    cdef S8 s8(self, str name) except *:
        cdef S8 out
        out.at = <const s64 *>self.find(name, "<i8", &out.n)
        return out


cdef class Mapped:
    """The columns of `image` (an `Image` of libetrace.image.file), as C sees them."""

    def __cinit__(self):
        self.views = []

    cdef int bind(self, object image) except -1:
        cdef Binder b = Binder.__new__(Binder)
        if not isinstance(image.attributes, dict):
            raise Error(f"{image.path}: damaged: its attributes are not an object", HINT)
        self.image = image
        b.image = image
        b.views = self.views
        bind_strings(self, b)
        bind_executions(self, b)
        bind_opens(self, b)
        bind_lists(self, b)
        bind_compilations(self, b)
        bind_products(self, b)
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

cdef int bind_strings(Mapped c, Binder b) except -1:
    b.take("strings", False)
    c.string_start = b.u8("start")
    c.string_bytes = b.u1("bytes")
    b.take("added_strings", True)
    c.added_start = b.u8("start")
    c.added_bytes = b.u1("bytes")
    c.n_strings = c.string_start.n - 1
    if c.added_start.n:
        c.n_strings += c.added_start.n - 1
    b.take("paths", False)
    c.path_string = b.u4("string")
    c.path_mode = b.u1("mode")
    c.path_opens_start = b.u8("opens.start")
    c.n_paths = c.path_string.n
    b.take("path_opens", False)
    c.path_open = b.u4("open")
    return 0


cdef int bind_executions(Mapped c, Binder b) except -1:
    b.take("executions", False)
    c.upid = b.s8("upid")
    c.index = b.s4("index")
    c.start_ns = b.s8("start_ns")
    c.elapsed_ns = b.s8("elapsed_ns")
    c.parent = b.s4("parent")
    c.binary = b.s4("binary")
    c.cwd = b.u4("cwd")
    c.status = b.s2("status")
    c.argv_start = b.u8("argv.start")
    c.opens_start = b.u8("opens.start")
    c.children_start = b.u8("children.start")
    c.inherited_start = b.u8("inherited.start")
    c.readers_start = b.u8("readers.start")
    c.cpus_start = b.u8("cpus.start")
    c.n_executions = c.upid.n
    return 0


cdef int bind_opens(Mapped c, Binder b) except -1:
    b.take("opens", False)
    c.open_path = b.u4("path")
    c.open_original = b.u4("original")
    c.open_ns = b.s8("open_ns")
    c.close_ns = b.s8("close_ns")
    c.until_ns = b.s8("until_ns")
    c.open_mode = b.u1("mode")
    c.open_size = b.s8("size")
    c.open_execution = b.u4("execution")
    c.n_opens = c.open_path.n
    b.take("changes", False)
    c.change_open = b.u4("open")
    c.change_kind = b.u1("kind")
    c.change_ns = b.s8("time_ns")
    c.change_name = b.s4("name")
    return 0


cdef int bind_lists(Mapped c, Binder b) except -1:
    b.take("arguments", False)
    c.argument = b.u4("string")
    b.take("inherited", False)
    c.inherited_descriptor = b.u1("descriptor")
    c.inherited_path = b.u4("path")
    c.inherited_mode = b.u1("mode")
    b.take("children", False)
    c.child_upid = b.s8("upid")
    c.child_flags = b.u8("flags")
    c.child_execution = b.s4("execution")
    b.take("pipe_readers", False)
    c.reader = b.u4("execution")
    b.take("cpus", False)
    c.cpu = b.u4("cpu")
    c.cpu_ns = b.s8("time_ns")
    return 0


cdef int bind_compilations(Mapped c, Binder b) except -1:
    b.take("compilations", True)
    c.compilation_execution = b.u4("execution")
    c.compilation_language = b.u4("language")
    c.compilation_type = b.u1("type")
    c.compilation_is_child = b.u1("is_child")
    c.files_start = b.u8("files.start")
    c.includes_start = b.u8("includes.start")
    c.definitions_start = b.u8("definitions.start")
    c.headers_start = b.u8("headers.start")
    c.objects_start = b.u8("objects.start")
    b.take("compilation_files", True)
    c.compiled_file = b.u4("string")
    b.take("compilation_includes", True)
    c.include_folder = b.u4("string")
    b.take("compilation_definitions", True)
    c.definition_name = b.u4("name")
    c.definition_value = b.u4("value")
    c.definition_is_undef = b.u1("is_undef")
    b.take("compilation_headers", True)
    c.header = b.u4("string")
    b.take("compilation_objects", True)
    c.compiled_object = b.u4("path")
    return 0


cdef int bind_products(Mapped c, Binder b) except -1:
    b.take("linked", True)
    c.linked_execution = b.u4("execution")
    c.linked_path = b.u4("path")
    c.linked_type = b.u1("type")
    c.linked_kind = b.u1("kind")
    b.take("wrappers", True)
    c.wrapper = b.s4("execution")
    b.take("patterns", True)
    c.pattern = b.u4("string")
    b.take("pattern_bits", True)
    c.pattern_bits = b.u1("bits")
    return 0
