# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Splits a Flight Data Recorder log into the buffers of its threads.

Version 1 writes buffers of equal size, later versions put a BufferExtents record before each. What
stands between them is skipped and told of. A buffer that says it is longer than the file, or ends where
none begins, ends where another one begins.
"""
from libc.stdlib cimport qsort
from libc.string cimport memchr, memcmp, memset

from libetrace.memory cimport buffer_add
from libetrace.xray.problems cimport (
    BUFFER_CUT_OFF, BUFFER_TOO_LONG, EMPTY_PREAMBLE, JUNK_BETWEEN, NO_BUFFER_SIZE, NO_NEW_BUFFER, problem_add,
)
from libetrace.xray.records cimport (
    BUFFER_EXTENTS, HEADER_BYTES, METADATA_BYTES, NEW_BUFFER, NEW_CPU_ID, PID, WALL_TIME, Record, load64,
    record_read,
)

cdef enum:
    # bytes of a header that do not differ between two of one log
    FIXED_BYTES = 16


cdef u8 _first_byte(const Header *header, int kind) noexcept nogil:
    return <u8>(0x80 | kind) if header.is_big else <u8>(kind << 1 | 1)


cdef bint _is_header(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # A NewBuffer of thread 256 begins like a header; but a WallTime follows it.
    if size - at < HEADER_BYTES or memcmp(data + at, data, FIXED_BYTES) != 0:
        return False
    return data[at + FIXED_BYTES] != _first_byte(header, WALL_TIME)


cdef bint _is_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # An extents record that a buffer which fits or another extents record follows.
    cdef u64 n_bytes, behind
    if size - at < METADATA_BYTES or data[at] != _first_byte(header, BUFFER_EXTENTS):
        return False
    n_bytes = load64(data + at + 1, header.is_big)
    behind = at + METADATA_BYTES
    if n_bytes > size - behind:
        return False
    if n_bytes == 0:
        return behind == size or data[behind] == _first_byte(header, BUFFER_EXTENTS)
    return n_bytes >= METADATA_BYTES and data[behind] == _first_byte(header, NEW_BUFFER)


cdef u64 _find_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # The next place from which a buffer can be read, or the end of the file.
    cdef const u8 *found
    while at < size:
        found = <const u8 *>memchr(data + at, _first_byte(header, BUFFER_EXTENTS), size - at)
        if found == NULL:
            break
        at = found - data
        if _is_buffer(header, data, at, size):
            return at
        at += 1
    return size


cdef u64 _find_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # The next place where a buffer of version 1 begins, or the end of the file.
    cdef const u8 *found
    while at < size:
        found = <const u8 *>memchr(data + at, _first_byte(header, NEW_BUFFER), size - at)
        if found == NULL:
            break
        at = found - data
        if size - at < 3 * METADATA_BYTES:
            break
        if (found[METADATA_BYTES] == _first_byte(header, WALL_TIME)
                and found[2 * METADATA_BYTES] == _first_byte(header, NEW_CPU_ID)):
            return at
        at += 1
    return size


cdef bint _read_preamble(const Header *header, const u8 *data, Block *block) noexcept nogil:
    # What the first records tell of a buffer; True when there is more in it than these.
    cdef Record record
    cdef u64 at = block.begin
    while True:
        record_read(header, data + at, data + block.end, &record)
        if record.what == NEW_BUFFER and not block.has_thread:
            block.thread = record.id
            block.has_thread = True
        elif record.what == WALL_TIME:
            block.wall_seconds = <s64>record.tsc
            block.wall_microseconds = record.id
        elif record.what == PID:
            block.process = record.id
        elif record.what == NEW_CPU_ID and not block.has_tsc:
            block.tsc = record.tsc
            block.cpu = record.number
            block.has_tsc = True
        else:
            return at < block.end
        at += record.n_bytes


cdef bint _ends_well(const Header *header, const u8 *data, u64 end, u64 size) noexcept nogil:
    return end == size or _is_buffer(header, data, end, size) or _is_header(header, data, end, size)


cdef int _add(const Header *header, const u8 *data, u64 begin, u64 end, Buffer *blocks,
              Problems *problems) noexcept nogil:
    cdef Block block
    memset(&block, 0, sizeof(block))
    block.begin = begin
    block.end = end
    block.sequence = blocks.len // sizeof(Block)
    if not _read_preamble(header, data, &block):
        problem_add(problems, EMPTY_PREAMBLE, begin, 0, 0)
    if not block.has_thread:
        problem_add(problems, NO_NEW_BUFFER, begin, 0, 0)
    return buffer_add(blocks, &block, sizeof(block))


cdef int _frame_equal(const Header *header, const u8 *data, u64 size, Buffer *blocks,
                      Problems *problems) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef u64 n_bytes = header.buffer_bytes
    cdef u64 end
    cdef bint is_sized = n_bytes >= METADATA_BYTES
    if not is_sized and at < size:
        problem_add(problems, NO_BUFFER_SIZE, 16, 0, 0)
    while at < size:
        if _is_header(header, data, at, size):
            at += HEADER_BYTES
            continue
        if not is_sized:
            end = _find_preamble(header, data, at + 1, size)
        elif n_bytes <= size - at:
            end = at + n_bytes
        else:
            end = size
            problem_add(problems, BUFFER_CUT_OFF, at, 0, 0)
        if end - at < METADATA_BYTES:
            problem_add(problems, JUNK_BETWEEN, at, end - at, 0)
        elif _add(header, data, at, end, blocks, problems) < 0:
            return -1
        at = end
    return 0


cdef int _frame_extents(const Header *header, const u8 *data, u64 size, Buffer *blocks,
                        Problems *problems) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef u64 following = 0  # a place from which a buffer can be read, not before `at`
    cdef u64 n_bytes, end
    while at < size:
        if _is_header(header, data, at, size):
            at += HEADER_BYTES
            continue
        if size - at < METADATA_BYTES or data[at] != _first_byte(header, BUFFER_EXTENTS):
            end = _find_buffer(header, data, at, size)
            problem_add(problems, JUNK_BETWEEN, at, end - at, data[at])
            at = end
            continue
        n_bytes = load64(data + at + 1, header.is_big)
        at += METADATA_BYTES
        end = at + n_bytes if n_bytes <= size - at else size
        if n_bytes > size - at or not _ends_well(header, data, end, size):
            if following < at:
                following = _find_buffer(header, data, at, size)
            if n_bytes > size - at and following == size:
                problem_add(problems, BUFFER_CUT_OFF, at - METADATA_BYTES, 0, 0)
            elif following < end:
                problem_add(problems, BUFFER_TOO_LONG, at - METADATA_BYTES, 0, 0)
            end = min(end, following)
        if end > at and _add(header, data, at, end, blocks, problems) < 0:
            return -1
        at = end
    return 0


cdef int frame(const Header *header, const u8 *data, u64 size, Buffer *blocks,
               Problems *problems) noexcept nogil:
    if header.version == 1:
        return _frame_equal(header, data, size, blocks, problems)
    return _frame_extents(header, data, size, blocks, problems)


cdef int _compare(const void *left, const void *right) noexcept nogil:
    cdef const Block *a = <const Block *>left
    cdef const Block *b = <const Block *>right
    if a.process != b.process:
        return -1 if a.process < b.process else 1
    if a.thread != b.thread:
        return -1 if a.thread < b.thread else 1
    if a.wall_seconds != b.wall_seconds:
        return -1 if a.wall_seconds < b.wall_seconds else 1
    if a.wall_microseconds != b.wall_microseconds:
        return -1 if a.wall_microseconds < b.wall_microseconds else 1
    return -1 if a.sequence < b.sequence else 1


cdef void sort_blocks(Buffer *blocks) noexcept nogil:
    if blocks.len:
        qsort(blocks.data, blocks.len // sizeof(Block), sizeof(Block), _compare)
