# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Conditions of filters, evaluated on many rows at once.

A condition looks at rows of one domain: paths, texts of paths or directories (rows of `strings`), opens,
or executions. The rows that it is given exist: who calls it checked them.
"""
from libetrace.image.mapped cimport NONE, Span
from libetrace.image.schema cimport ACCESS, EXISTS, TYPE, TYPE_DIR, TYPE_LNK, TYPE_REG
from libetrace.select.matching cimport IS_UNDER, make_matcher
from libetrace.select.path_kinds cimport (
    IS_COMPILED, IS_LINKED, PathKinds, compilation_of, linked_of, path_kinds,
)

from libetrace.select import windows_paths


cdef class Condition:
    """One condition on rows of one table."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        raise NotImplementedError


cdef class TextCondition(Condition):
    """The text of a path, a directory or a command."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        if self.domain == OF_COMMAND:
            return self.matcher.narrow_commands(columns, rows, n, self.negate, keep)
        return self.matcher.narrow_strings(columns, rows, n, self.negate, keep)


cdef class RootCondition(Condition):
    """Whether a path or directory lies in the directory where the build was started."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        root = columns.image.attributes.get("source_root", "")
        return make_matcher(IS_UNDER, root).narrow_strings(columns, rows, n, self.negate, keep)


cdef class NameCondition(Condition):
    """Whether a path is one of some."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef set wanted = set()
        cdef u64 i
        if windows_paths.has_windows_paths(columns.image):
            return narrow_windows_names(self, columns, rows, n, keep)
        for name in self.names:
            wanted.add(columns.find_path(<const char *>name, len(name)))
        for i in range(n):
            if keep[i]:
                keep[i] = (rows[i] in wanted) != self.negate
        return 0


cdef int narrow_windows_names(
    NameCondition condition, Mapped columns, const u32 *rows, u64 n, u8 *keep
) except -1:
    cdef u64 i
    holds = windows_paths.is_one_of(
        [name.decode("utf-8", "surrogateescape") for name in condition.names]
    )
    for i in range(n):
        if keep[i]:
            keep[i] = <bint>holds(columns.decode_path(rows[i])) != condition.negate
    return 0


cdef class KindCondition(Condition):
    """Whether a path is of some kinds (of path_kinds); plain: neither compiled nor linked."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef PathKinds known = path_kinds(columns)
        cdef bint found
        cdef u16 kinds
        cdef u64 i
        for i in range(n):
            kinds = known.kinds[rows[i]]
            found = (
                kinds & self.kinds != 0
                or known.sources[rows[i]] & self.sources != 0
                or (self.plain and not kinds & (IS_COMPILED | IS_LINKED))
            )
            keep[i] &= found != self.negate
        return 0


# Access of all opens of a path together: 0 read, 1 write, 2 both.
cdef int find_access(Mapped columns, u32 path) except -1:
    cdef bint is_read = False
    cdef bint is_write = False
    cdef Span span
    cdef u8 access
    cdef u64 i
    columns.span(&columns.path_opens_start, path, columns.path_open.n, &span)
    for i in range(span.first, span.last):
        if columns.path_open.at[i] >= columns.n_opens:
            raise columns.broken("path_opens.open", i, columns.path_open.at[i])
        access = columns.open_mode.at[columns.path_open.at[i]] & ACCESS
        is_read |= access != 1
        is_write |= access != 0
    return 2 if is_read and is_write else 1 if is_write else 0


cdef class GlobalAccessCondition(Condition):
    """Whether all opens of a path together are of an access: 0 read, 1 write, 2 both."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = (find_access(columns, rows[i]) == self.access) != self.negate
        return 0


cdef bint passes_mode(ModeCondition condition, u8 mode) noexcept nogil:
    cdef bint exists = mode & EXISTS != 0
    if condition.test == MODE_ACCESS:
        return min(mode & ACCESS, 2) == condition.access
    if condition.test == MODE_EXISTS:
        return exists
    if condition.test == MODE_GONE:
        return not exists
    if condition.test == MODE_FILE:
        return exists and mode & TYPE == TYPE_REG
    if condition.test == MODE_DIR:
        return exists and mode & TYPE == TYPE_DIR
    return (exists and mode & TYPE == TYPE_LNK) == (condition.test == MODE_SYMLINK)


cdef class ModeCondition(Condition):
    """A condition on the mode of an open: access, existence, type."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef bint verdicts[256]
        cdef u64 i
        for i in range(256):
            verdicts[i] = passes_mode(self, <u8>i) != self.negate
        for i in range(n):
            keep[i] &= verdicts[columns.open_mode.at[rows[i]]]
        return 0


cdef bint passes_execution(ExecutionCondition condition, Mapped columns, u32 row) except -1:
    cdef s64 parent
    if HAS_PARENT in condition.tests:
        parent = columns.parent.at[row]
        if parent >= <s64>columns.n_executions:
            raise columns.broken("executions.parent", row, parent)
        if parent == NONE:
            return condition.upid == NONE
        return parent >= 0 and columns.upid.at[parent] == condition.upid
    if HAS_COMMAND in condition.tests and columns.binary.at[row] != NONE:
        return True
    if HAS_COMPILATION in condition.tests and compilation_of(columns, row) != NONE:
        return True
    if HAS_MODULE in condition.tests and linked_of(columns, row) != NONE:
        return True
    return (
        HAS_NEITHER in condition.tests
        and columns.binary.at[row] != NONE
        and compilation_of(columns, row) == NONE
        and linked_of(columns, row) == NONE
    )


cdef class ExecutionCondition(Condition):
    """A condition on an execution: its parent's upid, or any of some classes."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = passes_execution(self, columns, rows[i]) != self.negate
        return 0


cdef class ProcessCondition(Condition):
    """Whether an execution is of one of some processes."""

    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1:
        cdef u64 i
        for i in range(n):
            if keep[i]:
                keep[i] = (columns.upid.at[rows[i]] in self.upids) != self.negate
        return 0
