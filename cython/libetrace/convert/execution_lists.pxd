# SPDX-License-Identifier: Apache-2.0
# Elements of the lists of an entry of a JSON database.
from libetrace.convert.json_values cimport Reading

cdef int read_child(Reading *reading) noexcept nogil
cdef int read_cpu(Reading *reading) noexcept nogil
cdef int read_reader(Reading *reading) noexcept nogil
cdef int read_open(Reading *reading) noexcept nogil
cdef int read_inherited(Reading *reading) noexcept nogil
# A piece of what the execution wrote.
cdef int read_piece(Reading *reading) noexcept nogil
