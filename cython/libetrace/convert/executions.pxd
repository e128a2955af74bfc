# SPDX-License-Identifier: Apache-2.0
# The executions of a JSON database.
from libetrace.convert.json_values cimport Reading

cdef int read_executions(Reading *reading) noexcept nogil
