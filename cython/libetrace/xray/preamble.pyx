# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Finds the beginnings of buffers, also in damaged logs.

A buffer's first records are NewBuffer, WallTime, Pid (from version 3 on) and NewCPUId; nothing but these
begins with their bytes at the end of a record, so one in the midst of a body is told from a payload
that looks like one.
"""
from libc.string cimport memchr, memcmp

from libetrace.xray.records cimport (
    BUFFER_EXTENTS, END_OF_BUFFER, FUNCTION, FUNCTION_BYTES, HEADER_BYTES, METADATA_BYTES, NEW_BUFFER, NEW_CPU_ID,
    PID, WALL_TIME, Record, bad_bytes, load64, record_read,
)

cdef enum:
    # bytes of a header that do not differ between two of one log
    FIXED_BYTES = 16
    # of the first byte of a record: those that a sound function record does not have
    LITTLE_MASK = 0x09
    BIG_MASK = 0xC0


cdef inline u8 _first_byte(const Header *header, int kind) noexcept nogil:
    return <u8>(0x80 | kind) if header.is_big else <u8>(kind << 1 | 1)


cdef inline bint _is(const Header *header, const u8 *data, u64 at, u64 size, int kind) noexcept nogil:
    return at < size and size - at >= METADATA_BYTES and data[at] == _first_byte(header, kind)


cdef bint is_header(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # A NewBuffer of thread 256 begins like a header; but a WallTime follows it.
    if size - at < HEADER_BYTES or memcmp(data + at, data, FIXED_BYTES) != 0:
        return False
    return data[at + FIXED_BYTES] != _first_byte(header, WALL_TIME)


cdef bint has_extents(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return header.version >= 2 and _is(header, data, at, size, BUFFER_EXTENTS)


cdef bint is_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    cdef u64 n_bytes, behind
    if not has_extents(header, data, at, size):
        return False
    n_bytes = load64(data + at + 1, header.is_big)
    behind = at + METADATA_BYTES
    if is_preamble(header, data, behind, size):
        return True
    if n_bytes > size - behind:
        return False
    if n_bytes == 0:
        return behind == size or data[behind] == _first_byte(header, BUFFER_EXTENTS)
    return n_bytes >= METADATA_BYTES and data[behind] == _first_byte(header, NEW_BUFFER)


cdef bint is_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    cdef int third = PID if header.version >= 3 else NEW_CPU_ID
    return (
        _is(header, data, at, size, NEW_BUFFER)
        and _is(header, data, at + METADATA_BYTES, size, WALL_TIME)
        and _is(header, data, at + 2 * METADATA_BYTES, size, third)
    )


cdef bint may_begin(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # One of the records may be damaged or lost, and with the first the thread.
    cdef u64 second = at + METADATA_BYTES
    cdef u64 third = second + METADATA_BYTES
    if _is(header, data, at, size, NEW_BUFFER):
        return (
            _is(header, data, second, size, WALL_TIME) or _is(header, data, second, size, PID)
            or _is(header, data, second, size, NEW_CPU_ID) or _is(header, data, third, size, PID)
            or _is(header, data, third, size, NEW_CPU_ID)
        )
    if _is(header, data, at, size, WALL_TIME):
        return _is(header, data, second, size, PID) or _is(header, data, second, size, NEW_CPU_ID)
    return (
        header.version >= 3 and _is(header, data, at, size, PID) and _is(header, data, second, size, NEW_CPU_ID)
    )


# Whether something begins at a place.
ctypedef bint (*Test)(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil


cdef u64 _find(const Header *header, const u8 *data, u64 at, u64 size, int kind, Test begins) noexcept nogil:
    # The next record of a kind with which something begins, or the end.
    cdef const u8 *found
    while at < size:
        found = <const u8 *>memchr(data + at, _first_byte(header, kind), size - at)
        if found == NULL:
            break
        at = found - data
        if begins(header, data, at, size):
            return at
        at += 1
    return size


cdef u64 find_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return _find(header, data, at, size, BUFFER_EXTENTS, is_buffer)


cdef u64 find_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return _find(header, data, at, size, NEW_BUFFER, is_preamble)


cdef u64 find_beginning(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # in one pass: the next of one kind may be far behind the next of the other
    while at < size:
        if is_buffer(header, data, at, size) or is_preamble(header, data, at, size):
            return at
        at += 1
    return size


cdef u64 pass_records(const Header *header, const u8 *data, u64 at, u64 stop, u64 end) noexcept nogil:
    cdef Record record
    cdef u64 n_bytes
    cdef u8 mask = BIG_MASK if header.is_big else LITTLE_MASK
    while at < stop:
        while stop - at >= 4 * FUNCTION_BYTES and not (data[at] | data[at + 8] | data[at + 16] | data[at + 24]) & mask:
            at += 4 * FUNCTION_BYTES
        if stop - at >= FUNCTION_BYTES and not data[at] & mask:
            at += FUNCTION_BYTES
            continue
        record_read(header, data + at, data + end, &record)
        if record.what == END_OF_BUFFER:
            return end
        if record.what == BUFFER_EXTENTS and is_buffer(header, data, at, end):
            return at
        if may_begin(header, data, at, end):
            return at
        n_bytes = record.n_bytes
        if record.what > FUNCTION or record.what == BUFFER_EXTENTS:
            n_bytes = bad_bytes(header, data, at, end, &record)
            if n_bytes == end - at:  # looked through once, when that is where the buffer ends
                return find_beginning(header, data, at, end) if stop == end else end
        at += n_bytes
    return min(at, end)
