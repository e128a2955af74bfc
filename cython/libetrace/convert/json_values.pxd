# SPDX-License-Identifier: Apache-2.0
# A JSON text on its way into a draft: where in it we are, and the values that several readers want.
from libetrace.image.column_builder cimport NONE, Draft, Reference, draft_name, draft_path
from libetrace.core.limits cimport limit_text, take_limit
from libetrace.core.memory cimport Buffer
from libetrace.core.json_text cimport (
    Scanner, fail, scan_letter, scan_more, scan_number, scan_open, scan_string, scan_unsigned,
    skip_value,
)
from libetrace.core.types cimport INT64_MAX, s64, u64

cdef enum:
    MAX_INDEX = 0x7fffffff


cdef struct Reading:
    Draft *draft
    Scanner scanner
    const char *begin
    s64 entry  # its number in the text, from 0 on; NONE outside
    char key  # of the entry, 0 before the first
    char inner  # in the value of that key
    u64 n_unknown  # keys that were skipped


# An element of an array.
ctypedef int (*read_element)(Reading *reading) noexcept nogil

cdef int read_list(Reading *reading, read_element read) noexcept nogil
# {"p":upid,"x":index}
cdef int read_reference(Reading *reading, Reference *reference) noexcept nogil
# Strings; their numbers are added to a column.
cdef int read_strings(Reading *reading, Buffer *numbers) noexcept nogil
cdef int read_paths(Reading *reading, Buffer *numbers) noexcept nogil


cdef inline Buffer *column(Reading *reading, int number) noexcept nogil:
    return &reading.draft.columns[number]


cdef inline int no_memory(Reading *reading) noexcept nogil:
    return fail(&reading.scanner, limit_text(take_limit()))


# The next key of an object, 0 after the last one; an unknown one is skipped with its value.
cdef inline int next_letter(Reading *reading, const char *known, bint *is_first) noexcept nogil:
    cdef Scanner *scanner = &reading.scanner
    cdef int status
    cdef int letter
    cdef const char *at
    while True:
        status = scan_more(scanner, c'}', is_first[0])
        if status <= 0:
            return status
        is_first[0] = False
        letter = scan_letter(scanner)
        if letter < 0:
            return -1
        at = known
        while at[0] and at[0] != <char>letter:
            at += 1
        if letter and at[0]:
            return letter
        reading.n_unknown += 1
        if skip_value(scanner) < 0:
            return -1


# The value of a key of an object, into what its reader knows.
ctypedef int (*read_member)(Reading *reading, int letter, void *into) noexcept nogil


cdef inline int read_object(Reading *reading, const char *known, read_member read,
                            void *into) noexcept nogil:
    cdef bint is_first = True
    cdef int letter
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        letter = next_letter(reading, known, &is_first)
        if letter <= 0:
            return letter
        reading.inner = <char>letter
        if read(reading, letter, into) < 0:
            return -1


# A time; Samsung CAS writes a negative one as one above 2^63.
cdef inline int read_time(Reading *reading, s64 *value) noexcept nogil:
    cdef u64 digits
    if reading.scanner.at[0] == c'-':
        return scan_number(&reading.scanner, -INT64_MAX, INT64_MAX, value)
    if scan_unsigned(&reading.scanner, &digits) < 0:
        return -1
    value[0] = <s64>digits
    return 0


cdef inline s64 read_name(Reading *reading) noexcept nogil:
    cdef const char *bytes
    cdef size_t len
    cdef s64 name
    if scan_string(&reading.scanner, &bytes, &len) < 0:
        return -1
    name = draft_name(reading.draft, bytes, len)
    return no_memory(reading) if name < 0 else name


cdef inline s64 read_path(Reading *reading) noexcept nogil:
    cdef const char *bytes
    cdef size_t len
    cdef s64 name
    if scan_string(&reading.scanner, &bytes, &len) < 0:
        return -1
    name = draft_path(reading.draft, bytes, len)
    return no_memory(reading) if name < 0 else name
