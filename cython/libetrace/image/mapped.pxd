# SPDX-License-Identifier: Apache-2.0
# The columns of an open image as C arrays. Nothing is checked when an image is opened: whoever
# takes a row number out of a column checks it, by the functions below or in the loop of a kernel.
from libetrace.core.types cimport s64, u64
from libetrace.image.columns cimport U8, Columns

cdef enum:
    NONE = -1

# Elements [first, last) of the table that a column `X.start` points into.
cdef struct Span:
    u64 first
    u64 last

# Bytes of a string; `data` is NULL when the string does not exist.
cdef struct Text:
    const char *data
    Py_ssize_t len


cdef class Mapped(Columns):
    cdef readonly object image
    cdef object kinds  # PathKinds of libetrace.select.path_kinds, when it was asked for
    cdef u64 n_executions
    cdef u64 n_opens
    cdef u64 n_paths
    cdef u64 n_strings  # those of products included

    cdef int bind(self, object image) except -1
    cdef int check(self) except -1
    cdef object broken(self, str column, s64 row, s64 value)
    cdef Text text(self, u64 string) noexcept nogil
    cdef str decode(self, u64 string)
    cdef str decode_path(self, u64 path)
    cdef int span(self, const U8 *start, u64 row, u64 n, Span *out) except -1
    cdef s64 find_string(self, const char *text, Py_ssize_t n_bytes) noexcept nogil
    cdef s64 find_path_of_string(self, u64 string) noexcept nogil
    cdef s64 find_path(self, const char *text, Py_ssize_t n_bytes) noexcept nogil
    cdef s64 find_execution(self, s64 upid, s64 index) noexcept nogil
    cdef object execution(self, s64 row)
    cdef object open(self, u64 row)


# Whether [start[row], start[row + 1]) is in a table of n rows.
cdef inline bint get_span(const U8 *start, u64 row, u64 n, Span *out) noexcept nogil:
    if row + 1 >= start.n:
        out.first = out.last = 0
        return False
    out.first = start.at[row]
    out.last = start.at[row + 1]
    if out.first <= out.last <= n:
        return True
    out.first = out.last = 0
    return False
