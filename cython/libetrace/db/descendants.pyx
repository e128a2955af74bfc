# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of executions by who forked whom: children, and all that descend from an execution."""
from libetrace.image.mapped cimport NONE, Span


# All executions of a process, from the row of its first on.
cdef list process_rows(Mapped columns, u64 first):
    cdef u64 end = first
    while end < columns.n_executions and columns.executions_upid.at[end] == columns.executions_upid.at[first]:
        end += 1
    return list(range(first, end))


# All executions of the children that an execution forked, in order of the forks.
cdef list child_rows(Mapped columns, u64 row):
    cdef list rows = []
    cdef Span span
    cdef u64 i
    cdef s64 child
    columns.span(&columns.executions_children_start, row, columns.children_execution.n, &span)
    for i in range(span.first, span.last):
        child = columns.children_execution.at[i]
        if child == NONE:
            continue
        if not 0 <= child < <s64>columns.n_executions:
            raise columns.broken("children.execution", i, child)
        rows += process_rows(columns, child)
    return rows


# An execution and all that descend from it, parents first.
cdef list descent_rows(Mapped columns, u64 row):
    cdef list rows = [row]
    cdef set seen = {row}  # a damaged image may have rings
    cdef Py_ssize_t at = 0
    while at < len(rows):
        for child in child_rows(columns, rows[at]):
            if child not in seen:
                seen.add(child)
                rows.append(child)
        at += 1
    return rows


# The first open of a path in some executions; NONE when none opened it (for writing).
cdef s64 find_open(Mapped columns, list executions, s64 path, bint is_written) except? -2:
    cdef Span span
    cdef u64 i
    for row in executions:
        columns.span(&columns.executions_opens_start, row, columns.n_opens, &span)
        for i in range(span.first, span.last):
            if columns.opens_path.at[i] == path and (columns.opens_mode.at[i] & 3 or not is_written):
                return i
    return NONE
