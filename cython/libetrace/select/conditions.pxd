# SPDX-License-Identifier: Apache-2.0
# Conditions of filters: each lowers a flag for every row that does not fulfil it.
from libetrace.core.types cimport s64, u8, u16, u32, u64
from libetrace.image.mapped cimport Mapped
from libetrace.select.matching cimport Matcher

# The rows to which a condition applies.
cdef enum Domain:
    OF_PATH
    OF_PATH_TEXT
    OF_OPEN
    OF_CWD_TEXT
    OF_COMMAND
    OF_EXECUTION


cdef enum ModeTest:
    MODE_ACCESS
    MODE_EXISTS
    MODE_GONE
    MODE_FILE
    MODE_DIR
    MODE_SYMLINK
    MODE_NO_SYMLINK


cdef enum ExecutionTest:
    HAS_PARENT
    HAS_COMMAND
    HAS_COMPILATION
    HAS_MODULE
    HAS_NEITHER


cdef class Condition:
    cdef Domain domain
    cdef bint negate

    # Lowers keep[i] to 0 where rows[i] does not fulfil the condition.
    cdef int narrow(self, Mapped columns, const u32 *rows, u64 n, u8 *keep) except -1


cdef class TextCondition(Condition):
    cdef Matcher matcher


cdef class RootCondition(Condition):
    pass


cdef class NameCondition(Condition):
    cdef list names


cdef class KindCondition(Condition):
    cdef u16 kinds
    cdef u8 sources
    cdef bint plain


cdef class GlobalAccessCondition(Condition):
    cdef u8 access


cdef class ModeCondition(Condition):
    cdef ModeTest test
    cdef u8 access


cdef class ExecutionCondition(Condition):
    cdef set tests
    cdef s64 upid


cdef class ProcessCondition(Condition):
    cdef set upids
