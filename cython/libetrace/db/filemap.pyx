# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Paths -> their opens, over the columns `paths.opens.start` and `path_opens`."""
from collections.abc import Mapping

from libetrace.image.mapped cimport NONE, Mapped, Span
from libetrace.db.open_file cimport make_open
from libetrace.core.types cimport s64, u64

from libetrace.core.errors import NotFoundError
from libetrace.core.texts import encode_path

ACCESSES = {"r": 0, "w": 1, "rw": 2, 0: 0, 1: 1, 2: 2}


cdef class PathOpens:
    """Opens by path; the mapping itself is FileMap."""
    cdef Mapped columns

    def __init__(self, Mapped columns not None):
        self.columns = columns

    cdef s64 row(self, path) except? -2:
        cdef bytes text = encode_path(path)
        return self.columns.find_path(text, len(text))

    def find(self, path):
        """Return the row of a path that was opened; NotFoundError."""
        cdef s64 row = self.row(path)
        if row == NONE or not self.count(row):
            raise NotFoundError(f"{path!r} was never opened")
        return row

    def count(self, u64 row):
        """Return how many opens a row of `paths` has."""
        cdef Span span
        self.columns.span(&self.columns.paths_opens_start, row, self.columns.path_opens_open.n, &span)
        return span.last - span.first

    def has(self, path):
        """Whether a path was opened."""
        cdef s64 row = self.row(path)
        return row != NONE and self.count(row) > 0

    def opens(self, u64 row, access=None):
        """Return the opens of a row of `paths`, of one access or of all."""
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        cdef u64 open
        cdef int wanted = -1 if access is None else access
        cdef list out = []
        columns.span(&columns.paths_opens_start, row, columns.path_opens_open.n, &span)
        for i in range(span.first, span.last):
            open = columns.path_opens_open.at[i]
            if open >= columns.n_opens:
                raise columns.broken("path_opens.open", i, open)
            if wanted < 0 or columns.opens_mode.at[open] & 3 == wanted:
                out.append(make_open(columns, open))
        return out

    def paths(self):
        """Return the paths that were opened, sorted as bytes."""
        cdef u64 row
        return [self.columns.decode_path(row) for row in range(self.columns.n_paths)
                if self.count(row)]


class FileMap(Mapping):
    """Mapping of each opened path to its opens.

    `filemap[path]`, `filemap[[path, ..]]` (all their opens) and `filemap[path, access]`, with access
    "r", "w" or "rw" (0, 1, 2), give lists; NotFoundError (a KeyError) names a path never opened.
    """

    __slots__ = ("_opens",)

    def __init__(self, columns):
        self._opens = PathOpens(columns)

    def __getitem__(self, key):
        if isinstance(key, list):
            return [file for path in key for file in self[path]]
        access = None
        if isinstance(key, tuple):
            key, access = key
            if access not in ACCESSES:
                raise NotFoundError(f"no access {access!r}", "r, w or rw")
            access = ACCESSES[access]
        return self._opens.opens(self._opens.find(key), access)

    def __contains__(self, path):
        return self._opens.has(path)

    def has_path(self, path):
        """Whether a path was opened."""
        return self._opens.has(path)

    def __iter__(self):
        return iter(self._opens.paths())

    def __len__(self):
        return len(self._opens.paths())
