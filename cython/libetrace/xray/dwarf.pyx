# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads what all of DWARF is made of, versions 2 to 5 and GNU's forms for split files.

Numbers of forms and attributes: DWARF 5, section 7.5; for 0x1f01 and up, binutils' dwarf2.def.
"""
from libc.string cimport memchr, memset

from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve

cdef enum:
    UNIT_TYPE = 2
    UNIT_SKELETON = 4
    UNIT_SPLIT_COMPILE = 5
    UNIT_SPLIT_TYPE = 6
    ATTRIBUTE_STATEMENTS = 0x10
    ATTRIBUTE_LOW_PC = 0x11
    ATTRIBUTE_HIGH_PC = 0x12
    ATTRIBUTE_ABSTRACT_ORIGIN = 0x31
    ATTRIBUTE_DECL_FILE = 0x3A
    ATTRIBUTE_DECL_LINE = 0x3B
    ATTRIBUTE_SPECIFICATION = 0x47
    ATTRIBUTE_ADDR_BASE = 0x73
    ATTRIBUTE_GNU_ADDR_BASE = 0x2133
    FORM_INDIRECT = 0x16
    FORM_IMPLICIT_CONST = 0x21
    MAX_ATTRIBUTES = 512  # no entry has more
    # in an abbreviation, on which entries spend no bytes: as many as are looked for
    MAX_CONSTANTS = 16
    # how many tables' worth of bytes are read of one file: damaged ones share a table among many units
    READINGS = 64


cdef int _form_bytes(u32 form, const Shape *shape) noexcept nogil:
    # Bytes of a form of fixed size, -1 for the others.
    if form == FORM_ADDR:
        return shape.address_bytes
    if form == FORM_REF_ADDR:
        return shape.address_bytes if shape.version == 2 else shape.offset_bytes
    if form in (0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21):  # strp, sec_offset, strp_sup, line_strp, GNU's alt
        return shape.offset_bytes
    if form in (0x19, 0x21):  # flag_present, implicit_const
        return 0
    if form in (0x0B, 0x0C, 0x11, 0x25, 0x29):  # data1, flag, ref1, strx1, addrx1
        return 1
    if form in (0x05, 0x12, 0x26, 0x2A):  # data2, ref2, strx2, addrx2
        return 2
    if form in (0x27, 0x2B):  # strx3, addrx3
        return 3
    if form in (0x06, 0x13, 0x1C, 0x28, 0x2C):  # data4, ref4, ref_sup4, strx4, addrx4
        return 4
    if form in (0x07, 0x14, 0x20, 0x24):  # data8, ref8, ref_sig8, ref_sup8
        return 8
    return 16 if form == 0x1E else -1  # data16


cdef void _skip_string(Cursor *cursor) noexcept nogil:
    cdef const u8 *end = NULL
    if cursor.at < cursor.end:
        end = <const u8 *>memchr(cursor.at, 0, cursor.end - cursor.at)
    if end == NULL:
        cursor_fail(cursor)
    else:
        cursor.at = end + 1


cdef u64 take_form(Cursor *cursor, const Shape *shape, u32 form, s64 constant) noexcept nogil:
    cdef int n_bytes
    cdef u64 value = 0
    while form == FORM_INDIRECT and not cursor.failed:
        form = <u32>take_uleb(cursor)
    if form == FORM_IMPLICIT_CONST:
        return <u64>constant
    n_bytes = _form_bytes(form, shape)
    if 0 <= n_bytes <= 8:
        return take(cursor, n_bytes)
    if n_bytes > 8:
        skip(cursor, n_bytes)
    elif form in (0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02):  # udata, ref_udata, indices
        value = take_uleb(cursor)
    elif form == 0x0D:  # sdata
        value = <u64>take_sleb(cursor)
    elif form in (0x09, 0x18):  # block, exprloc
        skip(cursor, take_uleb(cursor))
    elif form == 0x0A:  # block1
        skip(cursor, take(cursor, 1))
    elif form == 0x03:  # block2
        skip(cursor, take(cursor, 2))
    elif form == 0x04:  # block4
        skip(cursor, take(cursor, 4))
    elif form == 0x08:  # string
        _skip_string(cursor)
    elif form == 0x2001:  # LLVM_addrx_offset
        take_uleb(cursor)
        skip(cursor, 4)
    else:
        cursor_fail(cursor)
    return value


cdef bint unit_read(const u8 *info, u64 size, u64 offset, bint is_big, Unit *unit) noexcept nogil:
    cdef Cursor cursor = cursor_over(info, offset, size, is_big)
    cdef u64 length = take_length(&cursor, &unit.shape.offset_bytes)
    cdef u64 kind = 0
    unit.begin = offset
    unit.end = 0
    if cursor.failed or length > <u64>(cursor.end - cursor.at):
        return False
    unit.end = <u64>(cursor.at - info) + length
    cursor.end = info + unit.end
    unit.shape.version = <u16>take(&cursor, 2)
    if unit.shape.version >= 5:
        kind = take(&cursor, 1)
        unit.shape.address_bytes = <u8>take(&cursor, 1)
        unit.abbreviations = take(&cursor, unit.shape.offset_bytes)
    else:
        unit.abbreviations = take(&cursor, unit.shape.offset_bytes)
        unit.shape.address_bytes = <u8>take(&cursor, 1)
    if kind in (UNIT_SKELETON, UNIT_SPLIT_COMPILE):
        skip(&cursor, 8)
    elif kind in (UNIT_TYPE, UNIT_SPLIT_TYPE):
        skip(&cursor, 8 + unit.shape.offset_bytes)
    unit.first = <u64>(cursor.at - info)
    return not cursor.failed and 2 <= unit.shape.version <= 5 and unit.shape.address_bytes in (4, 8)


# ---- abbreviations ----


cdef bint _is_read(u32 name) noexcept nogil:
    return name in (
        ATTRIBUTE_STATEMENTS, ATTRIBUTE_LOW_PC, ATTRIBUTE_HIGH_PC, ATTRIBUTE_ABSTRACT_ORIGIN, ATTRIBUTE_DECL_FILE,
        ATTRIBUTE_DECL_LINE, ATTRIBUTE_SPECIFICATION, ATTRIBUTE_ADDR_BASE, ATTRIBUTE_GNU_ADDR_BASE,
    )


cdef int _add_attributes(Abbreviations *self, Cursor *cursor, Abbreviation *abbreviation) noexcept nogil:
    cdef Attribute attribute
    cdef int n_bytes, n_constants = 0
    abbreviation.first = <u32>(self.attributes.len // sizeof(Attribute))
    abbreviation.n = 0
    abbreviation.n_bytes = 0
    while not cursor.failed:
        attribute.name = <u32>take_uleb(cursor)
        attribute.form = <u32>take_uleb(cursor)
        attribute.constant = take_sleb(cursor) if attribute.form == FORM_IMPLICIT_CONST else 0
        if attribute.name == 0 and attribute.form == 0:
            break
        n_bytes = _form_bytes(attribute.form, &self.shape)
        abbreviation.n_bytes = -1 if n_bytes < 0 or abbreviation.n_bytes < 0 else abbreviation.n_bytes + n_bytes
        if n_bytes == 0:  # reading an entry must not cost more than its bytes
            if attribute.form != FORM_IMPLICIT_CONST or not _is_read(attribute.name):
                continue
            n_constants += 1
        abbreviation.n += 1
        if abbreviation.n > MAX_ATTRIBUTES or n_constants > MAX_CONSTANTS:
            cursor_fail(cursor)
            return 0
        if buffer_add(&self.attributes, &attribute, sizeof(attribute)) < 0:
            return -1
    return 0


cdef int _add_abbreviation(Abbreviations *self, u64 code, const Abbreviation *abbreviation) noexcept nogil:
    cdef u64 needed = (code + 1) * sizeof(Abbreviation)
    if needed > self.table.len:
        if buffer_reserve(&self.table, needed - self.table.len) < 0:
            return -1
        memset(self.table.data + self.table.len, 0, needed - self.table.len)
        self.table.len = needed
    (<Abbreviation *>self.table.data)[code] = abbreviation[0]
    return 0


cdef int abbreviations_read(
    Abbreviations *self, const u8 *abbrev, u64 size, bint is_big, const Unit *unit
) noexcept nogil:
    cdef Cursor cursor
    cdef Abbreviation abbreviation
    cdef u64 code, n_read
    if self.is_read and self.offset == unit.abbreviations and _same_shape(&self.shape, &unit.shape):
        return 1
    if not self.is_started:
        self.budget = READINGS * size
    self.is_started = True
    self.is_read = False
    self.offset = unit.abbreviations
    self.shape = unit.shape
    self.table.len = self.attributes.len = 0
    if unit.abbreviations >= size or self.budget == 0:
        return 0
    cursor = cursor_over(abbrev, unit.abbreviations, size, is_big)
    while not cursor.failed:
        code = take_uleb(&cursor)
        if code == 0 or code > size:  # producers count codes from 1: none is beyond their number
            break
        abbreviation.tag = <u32>take_uleb(&cursor)
        skip(&cursor, 1)  # whether it has children: entries are read flat
        if _add_attributes(self, &cursor, &abbreviation) < 0 or _add_abbreviation(self, code, &abbreviation) < 0:
            return -1
    n_read = <u64>(cursor.at - abbrev) - unit.abbreviations
    self.budget -= min(n_read, self.budget)
    self.is_read = True
    return 1


cdef bint _same_shape(const Shape *a, const Shape *b) noexcept nogil:
    return a.version == b.version and a.address_bytes == b.address_bytes and a.offset_bytes == b.offset_bytes


cdef void abbreviations_free(Abbreviations *self) noexcept nogil:
    buffer_free(&self.table)
    buffer_free(&self.attributes)


# ---- entries ----


cdef void entry_skip(Cursor *cursor, const Abbreviations *self, const Abbreviation *abbreviation) noexcept nogil:
    cdef const Attribute *attribute = <const Attribute *>self.attributes.data + abbreviation.first
    cdef u32 i
    if abbreviation.n_bytes >= 0:
        skip(cursor, <u64>abbreviation.n_bytes)
        return
    for i in range(abbreviation.n):
        take_form(cursor, &self.shape, attribute[i].form, attribute[i].constant)


cdef void entry_read(
    Cursor *cursor, const Abbreviations *self, const Abbreviation *abbreviation, Entry *entry
) noexcept nogil:
    cdef const Attribute *attribute = <const Attribute *>self.attributes.data + abbreviation.first
    cdef u32 i, name, form
    cdef u64 value
    memset(entry, 0, sizeof(entry[0]))
    entry.tag = abbreviation.tag
    for i in range(abbreviation.n):
        name, form = attribute[i].name, attribute[i].form
        value = take_form(cursor, &self.shape, form, attribute[i].constant)
        if name == ATTRIBUTE_LOW_PC:
            entry.low, entry.low_form = value, form
        elif name == ATTRIBUTE_HIGH_PC:
            entry.high, entry.high_form = value, form
        elif name == ATTRIBUTE_DECL_FILE:
            entry.file, entry.file_form = value, form
        elif name == ATTRIBUTE_DECL_LINE:
            entry.line, entry.line_form = value, form
        elif name == ATTRIBUTE_STATEMENTS:
            entry.line_table, entry.line_table_form = value, form
        elif name in (ATTRIBUTE_ADDR_BASE, ATTRIBUTE_GNU_ADDR_BASE):
            entry.address_base, entry.address_base_form = value, form
        elif name in (ATTRIBUTE_SPECIFICATION, ATTRIBUTE_ABSTRACT_ORIGIN):
            entry.link, entry.link_form = value, form
