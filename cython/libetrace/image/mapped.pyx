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

from libetrace.image.columns cimport U1

HINT = "make it again: cas cache"
cdef const char *EMPTY = b""


cdef class Mapped(Columns):
    """The columns of `image` (an `Image` of libetrace.image.file), as C sees them."""

    def __init__(self):
        pass  # bind() comes later

    cdef int bind(self, object image) except -1:
        if not isinstance(image.attributes, dict):
            raise Error(f"{image.path}: damaged: its attributes are not an object", HINT)
        self.image = image
        self.fill(image, {}, False)
        self.n_executions = self.executions_upid.n
        self.n_opens = self.opens_path.n
        self.n_paths = self.paths_string.n
        self.n_strings = self.strings_start.n - 1
        if self.added_strings_start.n:
            self.n_strings += self.added_strings_start.n - 1
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
        cdef const U8 *start = &self.strings_start
        cdef const U1 *data = &self.strings_bytes
        cdef u64 n_first = self.strings_start.n - 1
        out.data = NULL
        out.len = 0
        if string >= n_first:
            string -= n_first
            start = &self.added_strings_start
            data = &self.added_strings_bytes
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
        return self.decode(self.paths_string.at[path])

    cdef int span(self, const U8 *start, u64 row, u64 n, Span *out) except -1:
        if not get_span(start, row, n, out):
            raise self.broken("start", row, start.at[row] if row < start.n else -1)
        return 0

    # ---- looking up, log n comparisons each; NONE when there is none ----

    cdef s64 find_string(self, const char *text, Py_ssize_t n_bytes) noexcept nogil:
        cdef u64 low = 0
        cdef u64 high = self.strings_start.n - 1
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
            if self.paths_string.at[middle] < string:
                low = middle + 1
            else:
                high = middle
        if low < self.n_paths and self.paths_string.at[low] == string:
            return low
        return NONE

    cdef s64 find_path(self, const char *text, Py_ssize_t n_bytes) noexcept nogil:
        cdef s64 string = self.find_string(text, n_bytes)
        return NONE if string == NONE else self.find_path_of_string(string)

    # First row at or after (upid, index); n_executions when all are before.
    cdef s64 find_execution(self, s64 upid, s64 index) noexcept nogil:
        cdef u64 low = 0
        cdef u64 high = self.n_executions
        cdef u64 middle
        while low < high:
            middle = low + (high - low) / 2
            if self.executions_upid.at[middle] < upid or (
                self.executions_upid.at[middle] == upid and self.executions_index.at[middle] < index
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
