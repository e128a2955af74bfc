# SPDX-License-Identifier: Apache-2.0
# What post-processing said of an execution in JSON: keys n, m, d, l and t.
from libetrace.core.memory cimport Buffer
from libetrace.convert.json_values cimport Reading
from libetrace.core.types cimport s64


cdef struct Products:
    s64 wrapper  # upid or NONE
    s64 link  # name of a path or NONE
    s64 link_type
    bint has_compilation  # its lists are in their columns
    bint is_child
    s64 language  # 1 C, 2 C++, 0 any other
    bint has_patterns
    Buffer bits  # of the patterns


cdef void products_begin(Products *products) noexcept nogil
cdef void products_end(Products *products) noexcept nogil
# The value of one of the keys.
cdef int read_product(Reading *reading, int letter, Products *products) noexcept nogil
# The rows of an execution that is the last one of the draft.
cdef int add_products(Reading *reading, const Products *products) noexcept nogil
