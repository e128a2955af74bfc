# SPDX-License-Identifier: Apache-2.0
# DWARF's numbers, forms, units and abbreviations; no reader here goes beyond its bytes.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport UINT32_MAX, s64, u8, u16, u32, u64


# Reads from `at`; after `end` all is 0 and `failed` is set.
cdef struct Cursor:
    const u8 *at
    const u8 *end
    bint is_big
    bint failed


# The parameters of the sizes of forms.
cdef struct Shape:
    u16 version
    u8 address_bytes
    u8 offset_bytes  # 4, or 8 in 64-bit DWARF


cdef struct Unit:
    u64 begin  # offsets in .debug_info: of its header, of its first entry, after it
    u64 first
    u64 end
    u64 abbreviations  # offset in .debug_abbrev
    Shape shape


cdef struct Attribute:
    u32 name
    u32 form
    s64 constant  # of DW_FORM_implicit_const


cdef struct Abbreviation:
    u32 tag  # 0: no such code
    u32 first  # of its attributes
    u32 n
    s64 n_bytes  # of all attributes, -1 when it varies


cdef struct Abbreviations:
    Buffer table  # Abbreviation by code
    Buffer attributes
    u64 offset
    Shape shape
    bint is_started
    bint is_read
    u64 budget  # bytes that may still be read: units of damaged files may all name one long table


cdef enum:
    TAG_SUBPROGRAM = 0x2E
    FORM_ADDR = 0x01
    FORM_REF_ADDR = 0x10
    FORM_GNU_ADDR_INDEX = 0x1F01


# The requested values of an entry; a form of 0 means that it has no such value.
cdef struct Entry:
    u32 tag
    u64 low, high, line_table, address_base, file, line, link
    u32 low_form, high_form, line_table_form, address_base_form, file_form, line_form, link_form


cdef inline void cursor_fail(Cursor *cursor) noexcept nogil:
    cursor.at = cursor.end
    cursor.failed = True


cdef inline Cursor cursor_over(const u8 *data, u64 begin, u64 end, bint is_big) noexcept nogil:
    cdef Cursor cursor
    cursor.at = data + begin
    cursor.end = data + end
    cursor.is_big = is_big
    cursor.failed = False
    return cursor


cdef inline void skip(Cursor *cursor, u64 n_bytes) noexcept nogil:
    if <u64>(cursor.end - cursor.at) < n_bytes:
        cursor_fail(cursor)
    else:
        cursor.at += n_bytes


# An unsigned number of up to 8 bytes.
cdef inline u64 take(Cursor *cursor, int n_bytes) noexcept nogil:
    cdef u64 value = 0
    cdef int i
    if cursor.end - cursor.at < n_bytes:
        cursor_fail(cursor)
        return 0
    for i in range(n_bytes):
        if cursor.is_big:
            value = value << 8 | cursor.at[i]
        else:
            value |= <u64>cursor.at[i] << (8 * i)
    cursor.at += n_bytes
    return value


# The bits of a LEB128 number, how many they are and the last byte.
cdef inline u64 take_bits(Cursor *cursor, u32 *n_bits, u8 *last) noexcept nogil:
    cdef u64 value = 0
    n_bits[0] = 0
    while cursor.at < cursor.end:
        last[0] = cursor.at[0]
        cursor.at += 1
        if n_bits[0] < 64:
            value |= <u64>(last[0] & 0x7F) << n_bits[0]
        n_bits[0] += 7
        if last[0] < 0x80:
            return value
    last[0] = 0
    cursor.failed = True
    return 0


cdef inline u64 take_uleb(Cursor *cursor) noexcept nogil:
    cdef u32 n_bits
    cdef u8 last
    return take_bits(cursor, &n_bits, &last)


cdef inline s64 take_sleb(Cursor *cursor) noexcept nogil:
    cdef u32 n_bits
    cdef u8 last
    cdef u64 value = take_bits(cursor, &n_bits, &last)
    if last & 0x40 and n_bits < 64:
        value |= ~<u64>0 << n_bits
    return <s64>value


# The length that begins a unit or line table, and with it the size of offsets.
cdef inline u64 take_length(Cursor *cursor, u8 *offset_bytes) noexcept nogil:
    cdef u64 length = take(cursor, 4)
    offset_bytes[0] = 4
    if length == UINT32_MAX:
        offset_bytes[0] = 8
        length = take(cursor, 8)
    return length


# The value of an attribute, or where it has none that is a number, what it begins with.
cdef u64 take_form(Cursor *cursor, const Shape *shape, u32 form, s64 constant) noexcept nogil
# The header at `offset`; False when there is none or its version is unknown. `end` is right if it is not 0.
cdef bint unit_read(const u8 *info, u64 size, u64 offset, bint is_big, Unit *unit) noexcept nogil
# Make the table that of a unit; -1 without memory, 0 when it cannot be read.
cdef int abbreviations_read(
    Abbreviations *self, const u8 *abbrev, u64 size, bint is_big, const Unit *unit
) noexcept nogil
cdef void abbreviations_free(Abbreviations *self) noexcept nogil
# Skip an entry of this abbreviation, its code already read.
cdef void entry_skip(Cursor *cursor, const Abbreviations *self, const Abbreviation *abbreviation) noexcept nogil
cdef void entry_read(
    Cursor *cursor, const Abbreviations *self, const Abbreviation *abbreviation, Entry *entry
) noexcept nogil


# The abbreviation of the entry at the cursor; NULL for a null entry, and with `failed` for a code unknown.
cdef inline const Abbreviation *abbreviation_take(Cursor *cursor, const Abbreviations *self) noexcept nogil:
    cdef u64 code = take_uleb(cursor)
    cdef const Abbreviation *found
    if code == 0:
        return NULL
    if code < self.table.len // sizeof(Abbreviation):
        found = <const Abbreviation *>self.table.data + code
        if found.tag:
            return found
    cursor_fail(cursor)
    return NULL
