# SPDX-License-Identifier: Apache-2.0
# Bytes of a trace, wherever they come from, followed by ETRACE_PAD readable null bytes.

cdef class Source:
    cdef int fd  # that a stream is read from, -1: it is in memory
    cdef const char *data
    cdef readonly size_t size
    cdef bytearray owned  # with ETRACE_PAD null bytes at the end
    cdef void *map
    cdef size_t map_size
    cdef bint is_mapped
    cdef list parts  # of a merge

