# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads .debug_line: names of files by number, and the first line of functions by address.

Versions 2 to 5; DWARF 5, section 6.2. The tables of the section follow one another, so that rows are
found without the units that they belong to.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memset

from libetrace.core.types cimport UINT32_MAX, s64, u8, u16, u32, u64
from libetrace.xray.dwarf cimport (
    Cursor, Shape, cursor_fail, cursor_over, skip, take, take_form, take_length, take_sleb, take_uleb,
)

cdef enum:
    # standard opcodes
    COPY = 1
    ADVANCE_PC = 2
    ADVANCE_LINE = 3
    SET_FILE = 4
    CONST_ADD_PC = 8
    FIXED_ADVANCE_PC = 9
    # extended ones
    END_SEQUENCE = 1
    SET_ADDRESS = 2
    # DW_LNCT_path and the forms of strings
    CONTENT_PATH = 1
    FORM_STRING = 0x08
    FORM_STRP = 0x0E
    FORM_LINE_STRP = 0x1F
    # of one entry, so that damage does not cost the more the longer it is
    MAX_FORMATS = 16
    MAX_PATH = 4096  # PATH_MAX of Linux


cdef struct Header:
    Shape shape
    u64 program  # offsets in the section
    u64 end
    u8 min_bytes  # of an instruction
    u8 operations  # of one instruction, 1 but on VLIW machines
    int line_base
    u8 line_range
    u8 opcode_base
    u8[256] n_arguments


cdef struct Row:
    u64 address
    u64 operation
    u64 file
    u64 line


# The best row so far of a wanted address.
cdef struct First:
    u64 address
    u64 file
    u64 table
    u64 line  # 0: none


cdef bint _read_header(Cursor *cursor, const u8 *data, Header *header) noexcept nogil:
    """Read up to the directories; False when the version is unknown. `end` is right if it is not 0."""
    cdef u64 length = take_length(cursor, &header.shape.offset_bytes)
    cdef int i
    header.end = 0
    if cursor.failed or length > <u64>(cursor.end - cursor.at):
        return False
    header.end = <u64>(cursor.at - data) + length
    cursor.end = cursor.at + length
    header.shape.version = <u16>take(cursor, 2)
    header.shape.address_bytes = 8
    if header.shape.version >= 5:
        header.shape.address_bytes = <u8>take(cursor, 1)
        skip(cursor, 1)
    length = take(cursor, header.shape.offset_bytes)
    if cursor.failed or length > <u64>(cursor.end - cursor.at):
        return False
    header.program = <u64>(cursor.at - data) + length
    header.min_bytes = <u8>take(cursor, 1)
    header.operations = <u8>take(cursor, 1) if header.shape.version >= 4 else 1
    skip(cursor, 1)
    header.line_base = <int>take(cursor, 1)
    if header.line_base >= 128:
        header.line_base -= 256
    header.line_range = <u8>take(cursor, 1)
    header.opcode_base = <u8>take(cursor, 1)
    for i in range(1, header.opcode_base):
        header.n_arguments[i] = <u8>take(cursor, 1)
    return (
        not cursor.failed and 2 <= header.shape.version <= 5 and header.line_range > 0 and header.opcode_base > 0
    )


# ---- names of files ----


cdef const u8 *_take_string(Cursor *cursor, u64 *length) noexcept nogil:
    cdef const u8 *begin = cursor.at
    cdef const u8 *end = NULL
    if begin < cursor.end:
        end = <const u8 *>memchr(begin, 0, cursor.end - begin)
    if end == NULL:
        cursor_fail(cursor)
        return NULL
    length[0] = end - begin
    cursor.at = end + 1
    return begin


cdef object _name(const u8 *begin, u64 length):
    # Thousands of files may share a string as long as the section: no path is.
    return begin[:length] if begin != NULL and length <= MAX_PATH else None


cdef object _old_name(Cursor *cursor, u64 number):
    """Return the name of a file by number, counted from 1, of a table of version 2 to 4."""
    cdef u64 length = 1
    cdef const u8 *name = NULL
    while length and not cursor.failed:
        _take_string(cursor, &length)  # directories
    while not cursor.failed:
        name = _take_string(cursor, &length)
        number -= 1
        if name == NULL or length == 0:
            break
        if number == 0:
            return _name(name, length)
        take_uleb(cursor)
        take_uleb(cursor)
        take_uleb(cursor)
    return None


cdef object _at(const u8[::1] strings, u64 offset, bint is_big):
    cdef Cursor cursor
    cdef u64 length = 0
    cdef const u8 *begin
    if offset >= <u64>strings.shape[0]:
        return None
    cursor = cursor_over(&strings[0], offset, strings.shape[0], is_big)
    begin = _take_string(&cursor, &length)
    return _name(begin, length)


cdef int _take_formats(Cursor *cursor, u64 *formats) noexcept nogil:
    cdef int n = <int>take(cursor, 1)
    cdef int i
    if n > MAX_FORMATS:
        cursor_fail(cursor)
        return 0
    for i in range(2 * n):
        formats[i] = take_uleb(cursor)
    return n


cdef void _skip_entries(Cursor *cursor, const Header *header, const u64 *formats, int n, u64 count) noexcept nogil:
    # A count is a number of up to 64 bits: entries that take no bytes are as good as none.
    cdef const u8 *begin
    cdef int i
    while count and not cursor.failed:
        begin = cursor.at
        for i in range(n):
            take_form(cursor, &header.shape, <u32>formats[2 * i + 1], 0)
        if cursor.at == begin:
            break
        count -= 1


cdef object _new_name(Cursor *cursor, const Header *header, u64 number, const u8[::1] line_str, const u8[::1] strings):
    """Return the name of a file by number, counted from 0, of a table of version 5."""
    cdef u64[2 * MAX_FORMATS] formats
    cdef u64 value, length = 0
    cdef int n = _take_formats(cursor, formats)
    cdef int i
    cdef const u8 *begin
    _skip_entries(cursor, header, formats, n, take_uleb(cursor))
    n = _take_formats(cursor, formats)
    if number >= take_uleb(cursor):
        return None
    _skip_entries(cursor, header, formats, n, number)
    if cursor.failed:
        return None
    for i in range(n):
        if formats[2 * i] == CONTENT_PATH and formats[2 * i + 1] == FORM_STRING:
            begin = _take_string(cursor, &length)
            return _name(begin, length)
        value = take_form(cursor, &header.shape, <u32>formats[2 * i + 1], 0)
        if formats[2 * i] == CONTENT_PATH and not cursor.failed:
            if formats[2 * i + 1] == FORM_LINE_STRP:
                return _at(line_str, value, cursor.is_big)
            return _at(strings, value, cursor.is_big) if formats[2 * i + 1] == FORM_STRP else None
    return None


def file_name(
    const u8[::1] line not None, const u8[::1] line_str not None, const u8[::1] strings not None, u64 table,
    u64 number, bint is_big=False,
):
    """Return the name of a file as the table at offset `table` of .debug_line has it, bytes; None without.

    `line`, `line_str` and `strings` are the sections .debug_line, .debug_line_str and .debug_str.
    """
    cdef Header header
    cdef Cursor cursor
    if table >= <u64>line.shape[0]:
        return None
    cursor = cursor_over(&line[0], table, line.shape[0], is_big)
    if not _read_header(&cursor, &line[0], &header):
        return None
    if header.shape.version >= 5:
        return _new_name(&cursor, &header, number, line_str, strings)
    return _old_name(&cursor, number)


# ---- rows ----


cdef void _offer(const Row *row, u64 table, const Wanted *wanted, u64 reach, First *firsts) noexcept nogil:
    """Keep a row that has a line and is the first one after a wanted address, before the next."""
    cdef s64 low = 0, high = wanted.n, middle
    if row.line == 0 or row.line > UINT32_MAX:
        return
    while low < high:
        middle = (low + high) >> 1
        if wanted.at[middle] <= row.address:
            low = middle + 1
        else:
            high = middle
    low -= 1
    if low < 0 or row.address - wanted.at[low] >= reach:
        return
    if firsts[low].line == 0 or row.address < firsts[low].address:
        firsts[low].address, firsts[low].file = row.address, row.file
        firsts[low].table, firsts[low].line = table, row.line


cdef void _advance(const Header *header, Row *row, u64 n) noexcept nogil:
    if header.operations <= 1:
        row.address += header.min_bytes * n
        return
    n += row.operation
    row.address += header.min_bytes * (n // header.operations)
    row.operation = n % header.operations


cdef void _reset(Row *row) noexcept nogil:
    memset(row, 0, sizeof(row[0]))
    row.file = row.line = 1


cdef void _run_extended(Cursor *cursor, Row *row) noexcept nogil:
    cdef u64 length = take_uleb(cursor)
    cdef const u8 *end
    cdef u64 opcode
    if length == 0 or length > <u64>(cursor.end - cursor.at):
        cursor_fail(cursor)
        return
    end = cursor.at + length
    opcode = take(cursor, 1)
    if opcode == END_SEQUENCE:
        _reset(row)
    elif opcode == SET_ADDRESS and length <= 9:
        row.address = take(cursor, <int>length - 1)
        row.operation = 0
    cursor.at = end


cdef bint _run_standard(Cursor *cursor, const Header *header, Row *row, u64 opcode) noexcept nogil:
    """Carry out an opcode; True when it makes a row."""
    cdef int i
    if opcode == COPY:
        return True
    if opcode == ADVANCE_PC:
        _advance(header, row, take_uleb(cursor))
    elif opcode == ADVANCE_LINE:
        row.line += <u64>take_sleb(cursor)
    elif opcode == SET_FILE:
        row.file = take_uleb(cursor)
    elif opcode == CONST_ADD_PC:
        _advance(header, row, (255 - header.opcode_base) // header.line_range)
    elif opcode == FIXED_ADVANCE_PC:
        row.address += take(cursor, 2)
        row.operation = 0
    else:
        for i in range(header.n_arguments[opcode]):
            take_uleb(cursor)
    return False


cdef void _run(
    Cursor *cursor, const Header *header, u64 table, const Wanted *wanted, u64 reach, First *firsts
) noexcept nogil:
    cdef Row row
    cdef u64 opcode
    cdef bint is_row
    _reset(&row)
    while cursor.at < cursor.end:
        opcode = take(cursor, 1)
        if opcode >= header.opcode_base:
            opcode -= header.opcode_base
            _advance(header, &row, opcode // header.line_range)
            row.line += <u64>(header.line_base + <s64>(opcode % header.line_range))
            is_row = True
        elif opcode == 0:
            _run_extended(cursor, &row)
            is_row = False
        else:
            is_row = _run_standard(cursor, header, &row, opcode)
        if is_row:
            _offer(&row, table, wanted, reach, firsts)


cdef void _run_all(
    const u8 *data, u64 size, bint is_big, const Wanted *wanted, u64 reach, First *firsts
) noexcept nogil:
    cdef Header header
    cdef Cursor cursor
    cdef u64 at = 0
    while at < size:
        cursor = cursor_over(data, at, size, is_big)
        if _read_header(&cursor, data, &header) and header.program <= header.end:
            cursor = cursor_over(data, header.program, header.end, is_big)
            _run(&cursor, &header, at, wanted, reach, firsts)
        if header.end == 0:
            break
        at = header.end


cdef void fuzz_rows(const u8 *data, u64 size, bint is_big, const Wanted *wanted) noexcept nogil:
    cdef First *firsts = <First *>calloc(wanted.n, sizeof(First))
    if firsts != NULL:
        _run_all(data, size, is_big, wanted, ~<u64>0, firsts)
    free(firsts)


def first_lines(const u8[::1] line not None, const u64[::1] wanted not None, u64 reach, bint is_big=False):
    """Return (table, file, line) of the first row with a line after each wanted address.

    `wanted` ascends. A row is of the last wanted address before it, if it is less than `reach` bytes
    from there. `table` is an offset in .debug_line, for `file_name`.
    """
    cdef s64 i, n = wanted.shape[0]
    cdef bytearray memory = bytearray(n * sizeof(First))
    cdef First *firsts = <First *><char *>memory
    cdef Wanted sorted_wanted
    sorted_wanted.at, sorted_wanted.n = &wanted[0] if n else NULL, n
    if line.shape[0]:
        with nogil:
            _run_all(&line[0], line.shape[0], is_big, &sorted_wanted, reach, firsts)
    return {
        wanted[i]: (firsts[i].table, firsts[i].file, firsts[i].line) for i in range(n) if firsts[i].line
    }
