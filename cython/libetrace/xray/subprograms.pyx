# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Finds the DWARF entries of functions by address, and their declarations.

The entries of a unit are read one after the other, without the tree that they make; a unit whose
own range holds no address that is asked for is skipped. Damaged units end where the damage is.
"""
from libc.string cimport memset

from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.xray.line_table cimport Wanted, fuzz_rows
from libetrace.xray.dwarf cimport (
    FORM_ADDR, FORM_GNU_ADDR_INDEX, FORM_REF_ADDR, TAG_SUBPROGRAM, Abbreviation, Abbreviations, Cursor, Entry,
    Unit, abbreviation_take, abbreviations_free, abbreviations_read, cursor_over, entry_read, entry_skip, take,
    unit_read,
)

cdef enum:
    FORM_ADDRX = 0x1B
    FORM_ADDRX1 = 0x29
    FORM_ADDRX4 = 0x2C
    FORM_REF1 = 0x11
    FORM_REF_UDATA = 0x15


cdef enum:
    N_FUZZED = 64  # addresses that a fuzzed input is asked for
    # how many times the bytes of .debug_info are read at most: entries of damaged files may overlap
    READINGS = 64


cdef struct Sections:
    const u8 *info
    const u8 *abbrev
    const u8 *addr
    u64 info_bytes
    u64 abbrev_bytes
    u64 addr_bytes
    bint is_big


cdef bint _is_index(u32 form) noexcept nogil:
    return form in (FORM_ADDRX, FORM_GNU_ADDR_INDEX) or FORM_ADDRX1 <= form <= FORM_ADDRX4


cdef bint _address(const Sections *sections, const Unit *unit, u64 base, u64 value, u32 form, u64 *address) noexcept nogil:
    """Set the address that an attribute says; False when it says none."""
    cdef u64 at
    cdef Cursor cursor
    if form == FORM_ADDR:
        address[0] = value
        return True
    if not _is_index(form) or base > sections.addr_bytes or value > sections.addr_bytes:
        return False
    at = base + value * unit.shape.address_bytes
    if at > sections.addr_bytes:
        return False
    cursor = cursor_over(sections.addr, at, sections.addr_bytes, sections.is_big)
    address[0] = take(&cursor, unit.shape.address_bytes)
    return not cursor.failed


cdef s64 _first_from(const Wanted *wanted, u64 value) noexcept nogil:
    # index of the first that is not less
    cdef s64 low = 0, high = wanted.n, middle
    while low < high:
        middle = (low + high) >> 1
        if wanted.at[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint _may_hold(const Sections *sections, const Unit *unit, u64 base, const Entry *top, const Wanted *wanted) noexcept nogil:
    # A unit of several ranges has no end: it may hold any.
    cdef u64 low, end
    cdef s64 at
    if not top.high_form or not _address(sections, unit, base, top.low, top.low_form, &low):
        return True
    if not _address(sections, unit, base, top.high, top.high_form, &end):
        end = low + top.high
    at = _first_from(wanted, low)
    return at < wanted.n and wanted.at[at] < end


cdef void _scan_unit(
    const Sections *sections, const Unit *unit, const Abbreviations *table, u64 base, const Wanted *wanted,
    u64 *found,
) noexcept nogil:
    """Set in `found`, by index into `wanted`, 1 + the offset of the first entry of each function."""
    cdef Cursor cursor = cursor_over(sections.info, unit.first, unit.end, sections.is_big)
    cdef const Abbreviation *abbreviation
    cdef Entry entry
    cdef const u8 *begin
    cdef u64 address
    cdef s64 at
    cdef bint is_first = True
    while cursor.at < cursor.end:
        begin = cursor.at
        abbreviation = abbreviation_take(&cursor, table)
        if abbreviation == NULL:
            continue
        if is_first or abbreviation.tag == TAG_SUBPROGRAM:
            entry_read(&cursor, table, abbreviation, &entry)
            if is_first:
                is_first = False
                if entry.address_base_form:
                    base = entry.address_base
                if not _may_hold(sections, unit, base, &entry, wanted):
                    return
            elif _address(sections, unit, base, entry.low, entry.low_form, &address):
                at = _first_from(wanted, address)
                if at < wanted.n and wanted.at[at] == address and not found[at]:
                    found[at] = <u64>(begin - sections.info) + 1
        else:
            entry_skip(&cursor, table, abbreviation)


cdef int _scan(const Sections *sections, u64 base, const Wanted *wanted, u64 *found) noexcept nogil:
    cdef Abbreviations table
    cdef Unit unit
    cdef u64 at = 0
    cdef int status = 0
    memset(&table, 0, sizeof(table))
    while at < sections.info_bytes:
        if unit_read(sections.info, sections.info_bytes, at, sections.is_big, &unit):
            status = abbreviations_read(&table, sections.abbrev, sections.abbrev_bytes, sections.is_big, &unit)
            if status < 0:
                break
            if status > 0:
                _scan_unit(sections, &unit, &table, base, wanted, found)
        if unit.end == 0:
            break
        at = unit.end
    abbreviations_free(&table)
    return -1 if status < 0 else 0


cdef api int etrace_xray_debug_memory(const u8 *data, u64 size) noexcept nogil:
    cdef Sections sections
    cdef Wanted wanted
    cdef u64[N_FUZZED] addresses
    cdef u64[N_FUZZED] found
    cdef u64 i, cut
    if size < 2:
        return 0
    for i in range(<u64>N_FUZZED):
        addresses[i] = i * i
    wanted.at, wanted.n = addresses, N_FUZZED
    memset(found, 0, sizeof(found))
    cut = data[0] * (size - 2) // 255
    sections.is_big = data[1] & 1
    sections.info, sections.info_bytes = data + 2, cut
    sections.abbrev, sections.abbrev_bytes = data + 2 + cut, size - 2 - cut
    sections.addr, sections.addr_bytes = data, size
    fuzz_rows(data + 2, size - 2, sections.is_big, &wanted)
    return _scan(&sections, 0, &wanted, found)


cdef const u8 *_bytes(const u8[::1] data) noexcept:
    return &data[0] if data.shape[0] else NULL


cdef void _set_sections(Sections *self, const u8[::1] info, const u8[::1] abbrev, const u8[::1] addr, bint is_big):
    self.info, self.info_bytes = _bytes(info), info.shape[0]
    self.abbrev, self.abbrev_bytes = _bytes(abbrev), abbrev.shape[0]
    self.addr, self.addr_bytes = _bytes(addr), addr.shape[0]
    self.is_big = is_big


def find(
    const u8[::1] info not None, const u8[::1] abbrev not None, const u8[::1] addr not None,
    const u64[::1] wanted not None, bint is_big=False, u64 address_base=0,
):
    """Return the offset in .debug_info of the subprogram that begins at each wanted address.

    `wanted` ascends; `info`, `abbrev`, `addr` are the sections .debug_info, .debug_abbrev and
    .debug_addr, `address_base` is where addresses of a split unit begin in the latter. Addresses
    without an entry are left out.
    """
    cdef Sections sections
    cdef Wanted sorted_wanted
    cdef s64 i, n = wanted.shape[0]
    cdef bytearray memory = bytearray(n * sizeof(u64))
    cdef u64 *found = <u64 *><char *>memory
    cdef int status
    sorted_wanted.at, sorted_wanted.n = &wanted[0] if n else NULL, n
    _set_sections(&sections, info, abbrev, addr, is_big)
    with nogil:
        status = _scan(&sections, address_base, &sorted_wanted, found)
    if status < 0:
        raise MemoryError
    return {wanted[i]: found[i] - 1 for i in range(n) if found[i]}


cdef object _link(const Unit *unit, const Entry *entry):
    if entry.link_form == FORM_REF_ADDR:
        return entry.link
    if FORM_REF1 <= entry.link_form <= FORM_REF_UDATA and entry.link < unit.end - unit.begin:
        return unit.begin + entry.link
    return None


cdef object _described(
    const Sections *sections, const Unit *unit, const Abbreviations *table, u64 offset, const Entry *top, u64 *budget
):
    cdef Entry entry
    cdef Cursor cursor = cursor_over(sections.info, offset, unit.end, sections.is_big)
    cdef const Abbreviation *abbreviation = abbreviation_take(&cursor, table)
    if abbreviation == NULL:
        return None
    entry_read(&cursor, table, abbreviation, &entry)
    budget[0] -= min(budget[0], <u64>(cursor.at - sections.info) - offset)
    if cursor.failed:
        return None
    return (
        entry.file if entry.file_form else None, entry.line if entry.line_form else None,
        _link(unit, &entry), top.line_table if top.line_table_form else None,
    )


cdef void _read_top(const Sections *sections, const Unit *unit, const Abbreviations *table, Entry *top) noexcept:
    cdef Cursor cursor = cursor_over(sections.info, unit.first, unit.end, sections.is_big)
    cdef const Abbreviation *abbreviation = abbreviation_take(&cursor, table)
    memset(top, 0, sizeof(top[0]))
    if abbreviation != NULL:
        entry_read(&cursor, table, abbreviation, top)


def describe(
    const u8[::1] info not None, const u8[::1] abbrev not None, const u64[::1] offsets not None, bint is_big=False
):
    """Return what the entries at `offsets` (ascending) say: (file, line, link, line table), or None.

    Each is None when the entry does not say it. `file` is a number in the unit's line table, whose
    offset in .debug_line comes last; `link` is the offset of the entry that this is an instance of.
    """
    cdef Sections sections
    cdef Abbreviations table
    cdef Unit unit
    cdef Entry top
    cdef u64 at = 0
    cdef s64 i = 0, n = offsets.shape[0]
    cdef u64 budget = READINGS * <u64>info.shape[0]
    cdef int status
    _set_sections(&sections, info, abbrev, abbrev[:0], is_big)
    memset(&table, 0, sizeof(table))
    answers = [None] * n
    try:
        while at < sections.info_bytes and i < n:
            is_sound = unit_read(sections.info, sections.info_bytes, at, is_big, &unit)
            if unit.end == 0:
                break
            status = 0
            if is_sound and offsets[i] < unit.end:
                status = abbreviations_read(&table, sections.abbrev, sections.abbrev_bytes, is_big, &unit)
                _read_top(&sections, &unit, &table, &top)
            if status < 0:
                raise MemoryError
            while i < n and offsets[i] < unit.end:
                if status > 0 and offsets[i] >= unit.first and budget:
                    answers[i] = _described(&sections, &unit, &table, offsets[i], &top, &budget)
                i += 1
            at = unit.end
        return answers
    finally:
        abbreviations_free(&table)
