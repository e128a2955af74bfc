# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Strings of an image by their bytes or uses, and resolved paths by original paths."""
from cpython.array cimport array, clone
from libc.string cimport memcmp

from libetrace.core.types cimport s32, u8, u32, u64

cdef array NUMBERS = array("i")


cdef class Lookup:
    """The table `strings`, sorted as bytes, to be searched: log n comparisons, no objects."""

    cdef const u64[::1] start
    cdef const u8[::1] data
    cdef readonly Py_ssize_t n_rows

    def __init__(self, const u64[::1] start not None, const u8[::1] data not None):
        """ValueError when offsets go down or beyond the data: then the image is damaged."""
        self.start, self.data = start, data
        self.n_rows = start.shape[0] - 1
        if self.n_rows < 0 or not offsets_ascend(start, <u64>data.shape[0]):
            raise ValueError("offsets of strings are damaged")

    def find(self, const u8[:] text not None):
        """Return the row of a string, -1 when there is none."""
        cdef const u8 *raw = &text[0] if text.shape[0] else NULL
        cdef Py_ssize_t row = lower_bound(self, raw, text.shape[0], False)
        if row < self.n_rows and compare(self, row, raw, text.shape[0], False) == 0:
            return row
        return -1

    def prefixed(self, const u8[:] prefix not None):
        """Return (first, end) of the rows that begin with `prefix`."""
        cdef const u8 *raw = &prefix[0] if prefix.shape[0] else NULL
        return (lower_bound(self, raw, prefix.shape[0], False),
                lower_bound(self, raw, prefix.shape[0], True))


cdef bint offsets_ascend(const u64[::1] start, u64 n_bytes) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start.shape[0] - 1):
        if start[i] > start[i + 1]:
            return False
    return start[start.shape[0] - 1] <= n_bytes


# Order of a row against text; `by_prefix`: a row that begins with text comes before it.
cdef int compare(Lookup self, Py_ssize_t row, const u8 *text, Py_ssize_t size,
                 bint by_prefix) noexcept nogil:
    cdef Py_ssize_t length = <Py_ssize_t>(self.start[row + 1] - self.start[row])
    cdef Py_ssize_t common = min(length, size)
    cdef int order = memcmp(&self.data[self.start[row]], text, common) if common else 0
    if order != 0:
        return order
    if by_prefix and length >= size:
        return -1
    return 0 if length == size else (-1 if length < size else 1)


# The first row that is not before text.
cdef Py_ssize_t lower_bound(Lookup self, const u8 *text, Py_ssize_t size,
                            bint by_prefix) noexcept nogil:
    cdef Py_ssize_t low = 0, high = self.n_rows, middle
    while low < high:
        middle = (low + high) // 2
        if compare(self, middle, text, size, by_prefix) < 0:
            low = middle + 1
        else:
            high = middle
    return low


def used_strings(const u32[::1] column not None, Py_ssize_t n_strings):
    """Return a byte for each string, 1 for those that a column names: a bytearray.

    Rows out of range are passed over.
    """
    cdef Py_ssize_t i
    cdef bytearray out = bytearray(n_strings)
    cdef u8[::1] is_used = out
    with nogil:
        for i in range(column.shape[0]):
            if column[i] < n_strings:
                is_used[column[i]] = 1
    return out


def resolve_strings(const u32[::1] path_strings not None, const u32[::1] originals not None,
                    const u32[::1] paths not None, Py_ssize_t n_strings):
    """Return for each string the row of the path that it names, -1 when it names none: array "i".

    A string that some open asked for names what that open resolved to, the first one; else a
    path names itself. `originals` and `paths` are columns of `opens`. Rows out of range are passed
    over. ValueError when the columns differ in length.
    """
    if originals.shape[0] != paths.shape[0]:
        raise ValueError("columns of opens differ in length")
    cdef array out = clone(NUMBERS, n_strings, False)
    cdef s32[::1] rows = out
    with nogil:
        fill_rows(path_strings, originals, paths, rows)
    return out


cdef void fill_rows(const u32[::1] path_strings, const u32[::1] originals, const u32[::1] paths,
                    s32[::1] rows) noexcept nogil:
    cdef Py_ssize_t i, n_strings = rows.shape[0], n_paths = path_strings.shape[0]
    for i in range(n_strings):
        rows[i] = -1
    for i in range(originals.shape[0]):
        if (originals[i] < n_strings and paths[i] < n_paths and rows[originals[i]] < 0
                and path_strings[paths[i]] != originals[i]):
            rows[originals[i]] = <s32>paths[i]
    for i in range(n_paths):
        if path_strings[i] < n_strings and rows[path_strings[i]] < 0:
            rows[path_strings[i]] = <s32>i
