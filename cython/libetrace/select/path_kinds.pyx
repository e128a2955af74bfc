# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What post-processing says of executions and paths: compilations, linked modules, who made what.

A path is *compiled* when a compilation names it as a source, *linked* when a linker or archiver made
it, a *compiler* or *linker* when an execution of it did that. An image without products has none.
"""
from libc.string cimport memset

from libetrace.image.columns cimport U4
from libetrace.image.mapped cimport NONE, Span, get_span
from libetrace.core.types cimport u32


# Row of the first entry of a column sorted by execution; NONE when there is none.
cdef s64 find_row(const U4 *column, u64 execution) noexcept nogil:
    cdef u64 low = 0
    cdef u64 high = column.n
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if column.at[middle] < execution:
            low = middle + 1
        else:
            high = middle
    if low < column.n and column.at[low] == execution:
        return low
    return NONE


# Row in `compilations` of an execution, NONE when it did not compile.
cdef s64 compilation_of(Mapped columns, u64 execution) noexcept nogil:
    return find_row(&columns.compilations_execution, execution)


# First row in `linked` of an execution, NONE when it made no module.
cdef s64 linked_of(Mapped columns, u64 execution) noexcept nogil:
    return find_row(&columns.linked_execution, execution)


cdef class PathKinds:
    """What each path is; one pass over the products, made when it is first asked for."""

    cdef int fill(self, Mapped columns) except -1:
        cdef u64 i
        self.n_paths = columns.n_paths
        self.memory = bytearray(self.n_paths * (sizeof(s32) + sizeof(u16) + sizeof(u8)))
        self.makers = <s32 *><char *>self.memory
        self.kinds = <u16 *>(self.makers + self.n_paths)
        self.sources = <u8 *>(self.kinds + self.n_paths)
        memset(self.makers, 0xff, self.n_paths * sizeof(s32))  # NONE
        with nogil:
            for i in range(columns.n_executions):
                add_binary(self, columns, i, IS_BINARY)
            # the later ones win: who linked a path before who made it as an object, and so on
            for i in range(columns.compilations_execution.n):
                add_sources(self, columns, i)
            for i in range(columns.compilations_execution.n):
                add_objects(self, columns, i)
            for i in range(columns.linked_execution.n):
                add_module(self, columns, i)
        return 0


cdef void add_kind(PathKinds kinds, s64 path, u16 kind, u64 maker) noexcept nogil:
    if 0 <= path < <s64>kinds.n_paths:
        kinds.kinds[path] |= kind
        kinds.makers[path] = <s32>maker


cdef void add_binary(PathKinds kinds, Mapped columns, u64 execution, u16 kind) noexcept nogil:
    cdef s64 path
    if execution < columns.n_executions:
        path = columns.executions_binary.at[execution]
        if 0 <= path < <s64>kinds.n_paths:
            kinds.kinds[path] |= kind


cdef void add_sources(PathKinds kinds, Mapped columns, u64 compilation) noexcept nogil:
    cdef u32 execution = columns.compilations_execution.at[compilation]
    cdef u8 type = columns.compilations_type.at[compilation]
    cdef Span span
    cdef u64 i
    cdef s64 path
    add_binary(kinds, columns, execution, IS_COMPILER)
    get_span(&columns.compilations_files_start, compilation, columns.compilation_files_string.n, &span)
    for i in range(span.first, span.last):
        path = columns.find_path_of_string(columns.compilation_files_string.at[i])
        add_kind(kinds, path, IS_COMPILED, execution)
        if path >= 0:
            kinds.sources[path] |= (
                SOURCE_C if type == 1 else SOURCE_CXX if type == 2 else SOURCE_OTHER
            )


cdef void add_objects(PathKinds kinds, Mapped columns, u64 compilation) noexcept nogil:
    cdef Span span
    cdef u64 i
    get_span(&columns.compilations_objects_start, compilation, columns.compilation_objects_path.n, &span)
    for i in range(span.first, span.last):
        add_kind(
            kinds, columns.compilation_objects_path.at[i], IS_OBJECT,
            columns.compilations_execution.at[compilation],
        )


cdef void add_module(PathKinds kinds, Mapped columns, u64 row) noexcept nogil:
    cdef u8 kind = columns.linked_kind.at[row] & 3
    add_kind(
        kinds, columns.linked_path.at[row], <u16>(IS_ARCHIVE << kind),
        columns.linked_execution.at[row],
    )
    add_binary(kinds, columns, columns.linked_execution.at[row], IS_LINKER)


# The kinds of all paths of a database. Two threads may both make them; either is right.
cdef PathKinds path_kinds(Mapped columns):
    cdef PathKinds kinds
    if columns.kinds is None:
        kinds = PathKinds.__new__(PathKinds)
        kinds.fill(columns)
        columns.kinds = kinds
    return columns.kinds


# Whether a compilation or linking of this execution names the path.
cdef bint names_path(Mapped columns, u64 execution, u32 path) noexcept nogil:
    cdef s64 row = linked_of(columns, execution)
    cdef Span span
    cdef u64 i
    while 0 <= row < <s64>columns.linked_execution.n:
        if columns.linked_execution.at[row] != execution:
            break
        if columns.linked_path.at[row] == path:
            return True
        row += 1
    row = compilation_of(columns, execution)
    if row < 0:
        return False
    get_span(&columns.compilations_objects_start, row, columns.compilation_objects_path.n, &span)
    for i in range(span.first, span.last):
        if columns.compilation_objects_path.at[i] == path:
            return True
    get_span(&columns.compilations_files_start, row, columns.compilation_files_string.n, &span)
    for i in range(span.first, span.last):
        if columns.compilation_files_string.at[i] == columns.paths_string.at[path]:
            return True
    get_span(&columns.compilations_headers_start, row, columns.compilation_headers_string.n, &span)
    for i in range(span.first, span.last):
        if columns.compilation_headers_string.at[i] == columns.paths_string.at[path]:
            return True
    return False


# The execution that compiled or linked the file of an open: the opening one or the nearest above
# it that names the file, else the last of the build that made it. NONE when there is none.
cdef s64 find_maker(Mapped columns, u64 open) except? -2:
    cdef u32 path = columns.opens_path.at[open]
    cdef s64 execution = columns.opens_execution.at[open]
    cdef u64 n_left = columns.n_executions  # a damaged image may have a ring of parents
    if path >= columns.n_paths:
        raise columns.broken("opens.path", open, path)
    while 0 <= execution < <s64>columns.n_executions and n_left:
        if names_path(columns, execution, path):
            return execution
        execution = columns.executions_parent.at[execution]
        n_left -= 1
    return path_kinds(columns).makers[path]
