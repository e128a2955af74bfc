# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Splits a Flight Data Recorder log into the buffers of its threads.

Version 1 writes buffers of equal size, later versions put a BufferExtents record before each. What
is between them is skipped and reported. A buffer that says it is longer than the file, or ends where
none begins, ends where another one begins; one that says it is shorter than its records go on to be
ends there too. Where a buffer begins inside another one, that one ends. Each byte is passed over a few
times at most, whatever the log says.

A buffer's first records are NewBuffer, WallTime, Pid (from version 3 on) and NewCPUId; only these
begins with their bytes at the end of a record, so one in the midst of a body is distinguished from a
payload that looks like one.
"""
from libc.stdlib cimport qsort
from libc.string cimport memchr, memcmp, memset

from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.xray.records cimport (
    BAD_KIND, BUFFER_CUT_OFF, BUFFER_EXTENTS, BUFFER_INSIDE, BUFFER_TOO_LONG, BUFFER_TOO_SHORT, EMPTY_PREAMBLE,
    END_OF_BUFFER, FUNCTION, FUNCTION_BYTES, HEADER_BYTES, JUNK_BETWEEN, METADATA_BYTES, NEW_BUFFER, NEW_CPU_ID,
    NO_BUFFER_SIZE, NO_EXTENTS, NO_NEW_BUFFER, PID, WALL_TIME, Record, bad_bytes, goes_on, load64, problem_add,
    problems_free, record_read,
)


# ---- how buffers begin ----


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


# Is `at` a repeated header, an extents record?
cdef bint is_header(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # A NewBuffer of thread 256 begins like a header; but a WallTime follows it.
    if size - at < HEADER_BYTES or memcmp(data + at, data, FIXED_BYTES) != 0:
        return False
    return data[at + FIXED_BYTES] != _first_byte(header, WALL_TIME)


cdef bint has_extents(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return header.version >= 2 and _is(header, data, at, size, BUFFER_EXTENTS)


# A correct extents record, or any extents record that a preamble follows.
cdef bint is_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    cdef u64 n_bytes, after
    if not has_extents(header, data, at, size):
        return False
    n_bytes = load64(data + at + 1, header.is_big)
    after = at + METADATA_BYTES
    if is_preamble(header, data, after, size):
        return True
    if n_bytes > size - after:
        return False
    if n_bytes == 0:
        return after == size or data[after] == _first_byte(header, BUFFER_EXTENTS)
    return n_bytes >= METADATA_BYTES and data[after] == _first_byte(header, NEW_BUFFER)


# The records that begin a buffer, all of them.
cdef bint is_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    cdef int third = PID if header.version >= 3 else NEW_CPU_ID
    return (
        _is(header, data, at, size, NEW_BUFFER)
        and _is(header, data, at + METADATA_BYTES, size, WALL_TIME)
        and _is(header, data, at + 2 * METADATA_BYTES, size, third)
    )


# So many of them that at the end of a record this can be nothing else.
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


# The next place where a buffer, a preamble, or either begins; the end of the file when there is none.
cdef u64 find_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return _find(header, data, at, size, BUFFER_EXTENTS, is_buffer)


cdef u64 find_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    return _find(header, data, at, size, NEW_BUFFER, is_preamble)


cdef u64 find_beginning(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil:
    # in one pass: the next of one kind may be far after the next of the other
    while at < size:
        if is_buffer(header, data, at, size) or is_preamble(header, data, at, size):
            return at
        at += 1
    return size


# Pass over records up to the first one at or after `stop`, to where another buffer begins, or to `end`
# when nothing sound follows.
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


# ---- buffers ----


# A log and the buffers found in it.
cdef struct Framer:
    const Header *header
    const u8 *data
    u64 size
    bint salvages
    u64 following  # a place from which a buffer can be read, not before where one was asked for last
    Buffer *blocks
    Problems *problems


cdef void _take_preamble(const Record *record, Block *block) noexcept nogil:
    if record.what == NEW_BUFFER:
        block.thread = record.id
        block.has_thread = True
    elif record.what == WALL_TIME:
        block.wall_seconds = <s64>record.tsc
        block.wall_microseconds = record.id
        block.has_wall = True
    elif record.what == PID:
        block.process = record.id
    else:
        block.tsc = record.tsc
        block.cpu = record.number
        block.has_tsc = True


cdef u64 _read_preamble(const Header *header, const u8 *data, u64 end, Block *block) noexcept nogil:
    # What the first records say of a buffer, each once, and where they end. One may be bad.
    cdef Record record
    cdef u64 at = block.begin
    cdef u32 seen = 0
    cdef bint has_bad = False
    while True:
        record_read(header, data + at, data + end, &record)
        if record.what == BAD_KIND and not has_bad and goes_on(header, data, at + record.n_bytes, end):
            has_bad = True
            at += record.n_bytes
            continue
        if record.what not in (NEW_BUFFER, WALL_TIME, PID, NEW_CPU_ID) or seen >> record.what & 1:
            return at
        if record.what == NEW_BUFFER and seen:
            return at
        seen |= <u32>1 << record.what
        _take_preamble(&record, block)
        at += record.n_bytes


cdef int _add(Framer *self, u64 begin, u64 end, bint has_extents_, u64 *stop) noexcept nogil:
    """Add the buffer that begins at `begin`; `stop` becomes where it ends, at `end` at the latest."""
    cdef Block block
    memset(&block, 0, sizeof(block))
    block.begin = begin
    block.has_extents = has_extents_
    block.sequence = self.blocks.len // sizeof(Block)
    block.body = _read_preamble(self.header, self.data, end, &block)
    block.end = pass_records(self.header, self.data, block.body, end, end) if self.salvages else end
    stop[0] = block.end
    if block.end == begin:
        return 0
    if block.body == block.end:
        problem_add(self.problems, EMPTY_PREAMBLE, begin, 0, 0)
    if not block.has_thread:
        problem_add(self.problems, NO_NEW_BUFFER, begin, 0, 0)
    return buffer_add(self.blocks, &block, sizeof(block))


# ---- version 1 ----

cdef u64 _following_preamble(Framer *self, u64 at) noexcept nogil:
    if self.following < at:
        self.following = find_preamble(self.header, self.data, at, self.size)
    return self.following


cdef bint _is_in_place(const Framer *self, u64 at) noexcept nogil:
    # Does a buffer begin where one must, unless bytes are lost and all after them have moved?
    if at == self.size or is_header(self.header, self.data, at, self.size):
        return True
    return may_begin(self.header, self.data, at, self.size) and not may_begin(
        self.header, self.data, at - METADATA_BYTES, self.size
    )


cdef u64 _equal_end(Framer *self, u64 at) noexcept nogil:
    cdef u64 n_bytes = self.header.buffer_bytes
    cdef u64 end = self.size
    cdef u64 following
    if n_bytes < METADATA_BYTES:  # the header does not say it
        return _following_preamble(self, at + 1)
    if n_bytes <= self.size - at:
        end = at + n_bytes
        if _is_in_place(self, end):
            return end
    following = _following_preamble(self, at + 1) if self.salvages else self.size
    if following < end:
        problem_add(self.problems, BUFFER_INSIDE, following, 0, 0)
        return following
    if n_bytes > self.size - at:
        problem_add(self.problems, BUFFER_CUT_OFF, at, 0, 0)
    return end


cdef int _frame_equal(Framer *self) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef u64 end = 0  # of the buffer at `at` if it is known
    cdef u64 stop
    cdef bint is_sized = self.header.buffer_bytes >= METADATA_BYTES
    if not is_sized and at < self.size:
        problem_add(self.problems, NO_BUFFER_SIZE, 16, 0, 0)
    while at < self.size:
        if is_header(self.header, self.data, at, self.size):
            at += HEADER_BYTES
            continue
        if end <= at:
            end = _equal_end(self, at)
        if end - at < METADATA_BYTES:
            problem_add(self.problems, JUNK_BETWEEN, at, end - at, 0)
            at = end
            continue
        if _add(self, at, end, False, &stop) < 0:
            return -1
        if stop < end:
            problem_add(self.problems, BUFFER_INSIDE, stop, 0, 0)
            if is_sized and (end == self.size or not _is_in_place(self, end)):
                end = 0
        at = stop
    return 0


# ---- versions with extents ----

cdef u64 _following(Framer *self, u64 at) noexcept nogil:
    if self.following < at:
        self.following = find_buffer(self.header, self.data, at, self.size)
    return self.following


cdef bint _ends_well(const Framer *self, u64 end) noexcept nogil:
    # Nothing follows, or another buffer, even one that lost its extents record.
    return (
        end == self.size or is_buffer(self.header, self.data, end, self.size)
        or is_header(self.header, self.data, end, self.size)
        or is_preamble(self.header, self.data, end, self.size)
        or is_preamble(self.header, self.data, end + METADATA_BYTES, self.size)
    )


cdef bint _goes_beyond(const Framer *self, u64 begin, u64 end, u64 following) noexcept nogil:
    # Do records of a buffer go on after the end that it says? Function 0 is not one: these are zeros.
    cdef Block block
    cdef Record record
    cdef u64 at
    memset(&block, 0, sizeof(block))
    block.begin = begin
    at = _read_preamble(self.header, self.data, following, &block)
    at = pass_records(self.header, self.data, at, end, following)
    if at < end:
        return False
    record_read(self.header, self.data + at, self.data + following, &record)
    if record.what == FUNCTION and record.function == 0:
        return False
    return goes_on(self.header, self.data, at, following)


cdef u64 _stated_end(Framer *self, u64 at) noexcept nogil:
    """Return where the buffer after the extents record at `at` ends."""
    cdef u64 begin = at + METADATA_BYTES
    cdef u64 n_bytes = load64(self.data + at + 1, self.header.is_big)
    cdef bint fits = n_bytes <= self.size - begin
    cdef u64 end = begin + n_bytes if fits else self.size
    cdef u64 following
    cdef bint is_empty = n_bytes < METADATA_BYTES and is_preamble(self.header, self.data, begin, self.size)
    if fits and not is_empty and _ends_well(self, end):
        return end
    following = _following(self, begin)
    if not fits and following == self.size:
        problem_add(self.problems, BUFFER_CUT_OFF, at, 0, 0)
    elif following < end:
        problem_add(self.problems, BUFFER_TOO_LONG, at, 0, 0)
    elif self.salvages and following > end and _goes_beyond(self, begin, end, following):
        problem_add(self.problems, BUFFER_TOO_SHORT, at, 0, 0)
        return following
    return min(end, following)


cdef u64 _skip_junk(Framer *self, u64 at) noexcept nogil:
    """Return where the next buffer begins, with or without an extents record."""
    cdef u64 begin = at
    if not self.salvages:
        begin = _following(self, at)
    elif not may_begin(self.header, self.data, at, self.size):
        begin = find_beginning(self.header, self.data, at, self.size)
    if begin == self.size or has_extents(self.header, self.data, begin, self.size):
        problem_add(self.problems, JUNK_BETWEEN, at, begin - at, self.data[at])
    else:
        problem_add(self.problems, NO_EXTENTS, at, begin - at, 0)
    return begin


cdef int _frame_extents(Framer *self) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef u64 begin, end
    cdef bint is_stated
    while at < self.size:
        if is_header(self.header, self.data, at, self.size):
            at += HEADER_BYTES
            continue
        is_stated = has_extents(self.header, self.data, at, self.size)
        if is_stated:
            begin = at + METADATA_BYTES
            end = _stated_end(self, at)
        else:
            begin = _skip_junk(self, at)
            end = begin
            if begin < self.size and not has_extents(self.header, self.data, begin, self.size):
                end = _following(self, begin)
        if end > begin:
            if _add(self, begin, end, is_stated, &begin) < 0:
                return -1
            if is_stated and begin < end and has_extents(self.header, self.data, begin, self.size):
                problem_add(self.problems, BUFFER_TOO_LONG, at, 0, 0)
        at = begin
    return 0


cdef int frame(const Header *header, const u8 *data, u64 size, bint salvages, Buffer *blocks,
               Problems *problems) noexcept nogil:
    cdef Framer self
    memset(&self, 0, sizeof(self))
    self.header, self.data, self.size, self.salvages = header, data, size, salvages
    self.blocks, self.problems = blocks, problems
    return _frame_equal(&self) if header.version == 1 else _frame_extents(&self)


cdef class Frames:
    def __dealloc__(self):
        buffer_free(&self.blocks)
        problems_free(&self.problems)

    # Finds the buffers of a Flight Data Recorder log, whose header was read. MemoryError.
    cdef int find(self, const u8[::1] data, bint salvages) except -1:
        cdef const u8 *begin = &data[0]
        cdef u64 size = data.shape[0]
        cdef int failed
        with nogil:
            failed = frame(&self.header, begin, size, salvages, &self.blocks, &self.problems)
        if failed < 0:
            raise MemoryError
        return 0


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
