# SPDX-License-Identifier: Apache-2.0
# Rows of executions by who forked whom.
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport s64, u64


cdef list process_rows(Mapped columns, u64 first)
cdef list child_rows(Mapped columns, u64 row)
cdef list descent_rows(Mapped columns, u64 row)
cdef s64 find_open(Mapped columns, list executions, s64 path, bint is_written) except? -2
