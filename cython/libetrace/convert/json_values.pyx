# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Arrays, references and lists of strings of a JSON database."""
from libetrace.image.column_builder cimport add32
from libetrace.core.types cimport s32


cdef int read_list(Reading *reading, read_element read) noexcept nogil:
    cdef bint is_first = True
    cdef char inner = reading.inner
    cdef int status
    if scan_open(&reading.scanner, c'[') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c']', is_first)
        if status <= 0:
            return status
        is_first = False
        reading.inner = inner
        if read(reading) < 0:
            return -1


cdef int read_part(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Reference *reference = <Reference *>into
    return scan_number(&reading.scanner, -INT64_MAX, INT64_MAX,
                       &reference.upid if letter == c'p' else &reference.index)


cdef int read_reference(Reading *reading, Reference *reference) noexcept nogil:
    reference[0] = Reference(NONE, 0)
    return read_object(reading, b"px", read_part, reference)


cdef int read_numbers(Reading *reading, Buffer *numbers, bint are_paths) noexcept nogil:
    cdef bint is_first = True
    cdef int status
    cdef s64 name
    if scan_open(&reading.scanner, c'[') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c']', is_first)
        if status <= 0:
            return status
        is_first = False
        name = read_path(reading) if are_paths else read_name(reading)
        if name < 0:
            return -1
        if add32(numbers, <s32>name) < 0:
            return no_memory(reading)


cdef int read_strings(Reading *reading, Buffer *numbers) noexcept nogil:
    return read_numbers(reading, numbers, False)


cdef int read_paths(Reading *reading, Buffer *numbers) noexcept nogil:
    return read_numbers(reading, numbers, True)
